// charge.go KEY AMOUNT: charge once for each key, through idem serve. IDEM_STORE names the store.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

type object = map[string]any

var child = exec.Command("idem", "serve", "--stdio")
var requests = json.NewEncoder(must(child.StdinPipe())) // A line each.
var answers = json.NewDecoder(must(child.StdoutPipe()))

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func random() string {
	var bytes [16]byte
	must(rand.Read(bytes[:]))
	return fmt.Sprintf("%x", bytes)
}

// One request at a time: the next message with its id is the answer.
func call(method string, params object) object {
	id := random()
	must(0, requests.Encode(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
	for {
		var answer object
		must(0, answers.Decode(&answer))
		if answer["id"] != id {
			continue // A notification.
		}
		if answer["error"] != nil {
			must(0, fmt.Errorf("%v", answer["error"].(object)["message"]))
		}
		return answer["result"].(object)
	}
}

// The work must be shorter than half of its lease: nothing renews it here.
func once(key string, work func() (object, error)) (any, error) {
	got := call("begin", object{"key": key, "nonce": random(), "lease_ms": 600000})
	if got["verdict"] == "REPLAY" {
		return got["result"].(object)["json"], nil
	}
	if got["verdict"] != "STARTED" {
		return nil, fmt.Errorf("%s: %v", key, got["verdict"])
	}
	result, err := work()
	if err != nil { // It may have happened: a person must look.
		call("unknown", object{"attempt": got["attempt"], "text": err.Error()})
		return nil, err
	}
	call("complete", object{"attempt": got["attempt"], "result": object{"json": result}})
	return result, nil
}

func main() {
	must(0, child.Start())
	call("hello", object{"protocol": 1, "pid": os.Getpid()})
	receipt := must(once(os.Args[1], func() (object, error) {
		amount, err := strconv.Atoi(os.Args[2])
		if err == nil { // The effect: a line in the ledger of the bank.
			ledger := must(os.OpenFile("ledger", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
			must(fmt.Fprintln(ledger, os.Args[1]))
		}
		return object{"receipt": os.Getpid(), "amount": amount}, err
	}))
	fmt.Printf("%s\n", must(json.Marshal(receipt)))
}
