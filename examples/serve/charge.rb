# charge.rb KEY AMOUNT: charge once for each key, through idem serve. IDEM_STORE names the store.
require 'json'
require 'securerandom'

class Idem
  def initialize
    @pipe = IO.popen(%w[idem serve --stdio], 'r+')
    call('hello', protocol: 1, pid: Process.pid)
  end

  # One request at a time: the next line with its id is the answer.
  def call(method, **params)
    id = SecureRandom.hex(16)
    @pipe.puts(JSON.generate(jsonrpc: '2.0', id: id, method: method, params: params))
    @pipe.flush
    while (line = @pipe.gets)
      answer = JSON.parse(line)
      next if answer['id'] != id # A notification.
      raise answer['error']['message'] if answer['error']
      return answer['result']
    end
    raise 'idem serve has ended'
  end

  # The work must be shorter than half of its lease: nothing renews it here.
  def once(key)
    got = call('begin', key: key, nonce: SecureRandom.hex(16), lease_ms: 600_000)
    return got['result']['json'] if got['verdict'] == 'REPLAY'
    raise "#{key}: #{got['verdict']}" if got['verdict'] != 'STARTED'
    begin
      result = yield
    rescue StandardError => error # It may have happened: a person must look.
      call('unknown', attempt: got['attempt'], text: error.message)
      raise
    end
    call('complete', attempt: got['attempt'], result: { json: result })
    result
  end
end

def charge(key, amount) # The effect: a line in the ledger of the bank.
  File.write('ledger', "#{key}\n", mode: 'a')
  { 'receipt' => Process.pid, 'amount' => amount }
end

key, amount = ARGV
puts JSON.generate(Idem.new.once(key) { charge(key, Integer(amount)) })
