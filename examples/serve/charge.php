<?php
/* charge.php KEY AMOUNT: charge once for each key, through idem serve. IDEM_STORE names the store. */
final class Idem
{
    private $pipes;
    private $child;

    public function __construct()
    {
        $this->child = proc_open(['idem', 'serve', '--stdio'], [['pipe', 'r'], ['pipe', 'w']], $this->pipes);
        $this->call('hello', ['protocol' => 1, 'pid' => getmypid()]);
    }

    /* One request at a time: the next line with its id is the answer. */
    public function call(string $method, array $params): array
    {
        $id = bin2hex(random_bytes(16));
        $request = ['jsonrpc' => '2.0', 'id' => $id, 'method' => $method, 'params' => $params];
        fwrite($this->pipes[0], json_encode($request, JSON_THROW_ON_ERROR) . "\n");
        while (($line = fgets($this->pipes[1])) !== false) {
            $answer = json_decode($line, true, 64, JSON_THROW_ON_ERROR);
            if (($answer['id'] ?? null) !== $id) {
                continue; /* A notification. */
            }
            if (isset($answer['error'])) {
                throw new RuntimeException($answer['error']['message']);
            }
            return $answer['result'];
        }
        throw new RuntimeException('idem serve has ended');
    }

    /* The work must be shorter than half of its lease: nothing renews it here. */
    public function once(string $key, callable $work): array
    {
        $nonce = bin2hex(random_bytes(16));
        $got = $this->call('begin', ['key' => $key, 'nonce' => $nonce, 'lease_ms' => 600000]);
        if ($got['verdict'] === 'REPLAY') {
            return $got['result']['json'];
        }
        if ($got['verdict'] !== 'STARTED') {
            throw new RuntimeException("$key: {$got['verdict']}");
        }
        try {
            $result = $work();
        } catch (Throwable $error) { /* It may have happened: a person must look. */
            $this->call('unknown', ['attempt' => $got['attempt'], 'text' => $error->getMessage()]);
            throw $error;
        }
        $this->call('complete', ['attempt' => $got['attempt'], 'result' => ['json' => $result]]);
        return $result;
    }
}

function charge(string $key, string $amount): array /* The effect: a line in the bank's ledger. */
{
    if (!ctype_digit($amount)) {
        throw new InvalidArgumentException("$amount is not an amount");
    }
    file_put_contents('ledger', "$key\n", FILE_APPEND);
    return ['receipt' => getmypid(), 'amount' => (int) $amount];
}

[, $key, $amount] = $argv;
echo json_encode((new Idem())->once($key, fn () => charge($key, $amount))), "\n";
