-- Asks the doors whether a request may pass: `http-request lua.lessor ADDRESS` sets txn.lessor_status to 200, to 429, or to what
-- else they say, and to 0 where nobody answers.

local heard = {
  lessor_standing = "ratelimit",
  lessor_policy = "ratelimit-policy",
  lessor_retry_after = "retry-after",
}

local function lessor(txn, address)
  local fields = {
    ["x-forwarded-method"] = { txn.sf:method() },
    ["x-forwarded-uri"] = { txn.sf:pathq() },
    ["x-forwarded-host"] = { txn.sf:req_hdr("host") },
    ["x-forwarded-for"] = { txn.sf:src() },
  }
  local answer = core.httpclient():get { url = address, headers = fields, timeout = 1000 }
  local status = answer and answer.status or 0
  txn:set_var("txn.lessor_status", status)
  txn:set_var("txn.lessor_body", answer and answer.body or "")
  for name, field in pairs(heard) do
    local values = answer and answer.headers and answer.headers[field]
    if values then
      txn:set_var("txn." .. name, values[0])
    end
  end
end

core.register_action("lessor", { "http-req" }, lessor, 1)
