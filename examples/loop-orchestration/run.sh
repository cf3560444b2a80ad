#!/bin/sh
# Runs hosted loops from their start to their stop, and asserts what each did. No key, no network, nothing left behind.
#
#   sh examples/loop-orchestration/run.sh [LOOPS]
#
# Exits with 1 at the first assertion that does not hold. LOOPS is another directory of definitions, for tests. Rondo is
# $RONDO, that of a checkout, the one that is installed here or in a directory above, or the one on the PATH.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
given=$(CDPATH='' cd -- "${1:-$here/loops}" && pwd -P)

# Prints the file or the command that is Rondo.
find_rondo() {
  [ -z "${RONDO:-}" ] || { echo "$RONDO"; return; }
  checkout=$here/../../lib/surfaces/cli/main.js
  [ ! -f "$checkout" ] || { echo "$checkout"; return; }
  directory=$here
  while :; do
    [ ! -x "$directory/node_modules/.bin/rondo" ] || { echo "$directory/node_modules/.bin/rondo"; return; }
    [ "$directory" != / ] || break
    directory=$(dirname -- "$directory")
  done
  command -v rondo
}

main=$(find_rondo) || {
  echo 'Rondo was not found. Here: npm install rondo. In a checkout: npm ci && npm run build' >&2
  exit 1
}

work=$(mktemp -d "${TMPDIR:-/tmp}/rondo-loops.XXXXXX")
work=$(CDPATH='' cd -- "$work" && pwd -P)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' HUP INT TERM
cd -- "$work"

# The tools of the definitions do nothing. Here they write to a ledger, with code that this script trusts.
loops=$work/loops
cp -R "$given" "$loops"
cp -R "$here/ledger/." "$loops"

# Settings of the reader must not change the result.
for name in $(env | sed -n 's/^\(RONDO_[A-Z0-9_]*\)=.*/\1/p; s/^\(RUNX_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
export NO_COLOR=1 LEDGER="$work/ledger.ndjson"
data=$work/data

# --- Helpers -----------------------------------------------------------------------------------------------------------

section() { printf '\n%s\n' "$1"; }

# Prints a part of an output, indented.
show() { sed 's/^/    /'; }

# Each section has a store of its own.
store() { data=$work/$1; rm -f -- "$LEDGER"; }

# Runs Rondo, and keeps the exit code in `code`. Its messages for people go to a file, which a failure prints.
rondo() {
  code=0
  case $main in
    *.js) node "$main" "$@" --data "$data" --loops "$loops" --trust "$loops" 2> "$work/messages" || code=$? ;;
    *) "$main" "$@" --data "$data" --loops "$loops" --trust "$loops" 2> "$work/messages" || code=$? ;;
  esac
}

# Runs Rondo, which must succeed.
run() {
  rondo "$@"
  [ "$code" = 0 ] || fail "rondo $*"
}

# Runs Rondo with --json, and keeps the document for `holds`.
ask() { rondo "$@" --json > "$work/it.json"; }

fail() {
  printf '  ✗ %s\n' "$1"
  [ ! -s "$work/why" ] || show < "$work/why"
  [ "$code" = 0 ] || { echo "    exit code $code"; show < "$work/messages"; }
  printf '\nFailed.\n'
  exit 1
}

# Asserts that a shell command succeeds.
that() {
  statement=$1
  shift
  if "$@"; then printf '  ✓ %s\n' "$statement"; else
    echo "false: $*" > "$work/why"
    fail "$statement"
  fi
}

# Asserts that a JavaScript expression is true of `it`, the last document.
holds() {
  if node -e "$HOLDS" "$2" "$work" "$loops" 2> "$work/why"; then printf '  ✓ %s\n' "$1"; else fail "$1"; fi
}

# If the expression is not true, prints the first part of it that is not, and what it reads.
HOLDS='
  const fs = require("node:fs");
  const { createHash } = require("node:crypto");
  const { inspect } = require("node:util");
  const [expression, work, loops] = process.argv.slice(1);
  const it = JSON.parse(fs.readFileSync(`${work}/it.json`, "utf8"));
  const statementsOf = (bundle) =>
    bundle.receipts.map(({ envelope }) => JSON.parse(Buffer.from(envelope.payload, "base64")).predicate);
  const bundle = () => statementsOf(JSON.parse(fs.readFileSync(`${work}/receipts.json`, "utf8")));
  const digestOf = (file) => createHash("sha256").update(fs.readFileSync(`${loops}/${file}`)).digest("hex");
  const isReceipt = (id) => /^sha256:[0-9a-f]{64}$/.test(id);
  const scope = { it, bundle, digestOf, isReceipt };
  const evaluate = (code) => new Function(...Object.keys(scope), `return (${code});`)(...Object.values(scope));
  const isFalse = (code) => {
    try {
      return evaluate(code) !== true;
    } catch (thrown) {
      // A piece of a function is not an expression, or reads the parameters of the function.
      return !(thrown instanceof SyntaxError || thrown instanceof ReferenceError);
    }
  };
  const onlyNamed = (value, names) => {
    if (Array.isArray(value)) return value.map((each) => onlyNamed(each, names));
    if (value === null || typeof value !== "object") return value;
    const members = Object.entries(value).filter(([name]) => names.has(name));
    return Object.fromEntries(members.map(([name, each]) => [name, onlyNamed(each, names)]));
  };
  if (isFalse(expression)) {
    const part = expression.split(" && ").find(isFalse) ?? expression;
    const names = new Set(part.match(/\w+/g));
    const values = [["it", it], ...(names.has("bundle") ? [["bundle()", bundle()]] : [])];
    console.error(`false: ${part}`);
    for (const [name, value] of values)
      if (names.has(name.replace("()", "")))
        console.error(`${name} = ${inspect(onlyNamed(value, names), { depth: 8, breakLength: 100, maxStringLength: 80 })}`);
    process.exitCode = 1;
  }
'

# Prints a member of the last document, such as `0.id`.
member() {
  node -e '
    const it = JSON.parse(require("node:fs").readFileSync(process.argv[2], "utf8"));
    console.log(process.argv[1].split(".").reduce((value, name) => value[name], it));
  ' "$1" "$work/it.json"
}

# Does what is due, as the worker of a server does all the time.
work() { run worker --once; }

# Prints the turns of a loop: key, status, receipt, cause, and what followed.
turns() { rondo host status "$1" --turns | show; }

ledger_lines() { if [ -f "$LEDGER" ]; then wc -l < "$LEDGER" | tr -d ' '; else echo 0; fi; }
ledger_has() { [ "$(ledger_lines)" = "$1" ]; }
# Exports the receipts of the store. An export overwrites no file.
export_receipts() {
  rm -f -- "$work/receipts.json"
  run export --out "$work/receipts.json"
}
exited_with() { [ "$code" = "$1" ]; }

# --- The loops ---------------------------------------------------------------------------------------------------------

echo 'Loop orchestration: bounded turns, each with its receipt'
echo "  store     $work (temporary)"
echo "  loops     $given"

section 'a. Bounded turns'
store bounded
ask host start sort-tickets
holds 'starting a loop runs nothing' 'it.status === "waiting" && it.turns === 0'
work
turns sort-tickets
ask host status sort-tickets --turns
holds 'it has three turns, with the keys sort-tickets#1 to #3' \
  'it.turnList.map(({ key }) => key).join() === "sort-tickets#1,sort-tickets#2,sort-tickets#3"'
holds 'each turn has a receipt of its own' \
  'it.turnList.every(({ receipt }) => isReceipt(receipt)) && new Set(it.turnList.map(({ receipt }) => receipt)).size === 3'
holds 'the first two say when the next turn is due' \
  'it.turnList.slice(0, 2).every(({ status, next }) => status === "ok" && Date.parse(next.dueAt) > 0)'
holds 'the model names a fourth ticket, and the maximum stops the loop' \
  'it.status === "stopped" && it.reason === "max_turns" && it.turnList[2].next.stopped === "max_turns"'
work
ask host status sort-tickets
holds 'a stopped loop gets no further turn' 'it.turns === 3 && it.projection.fresh === true'

section 'b. Context: a skill, and the receipt of the turn before'
export_receipts
node -e '
  for (const { envelope } of JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")).receipts) {
    const { hosted, context } = JSON.parse(Buffer.from(envelope.payload, "base64")).predicate;
    for (const { name, bytes, digest } of context)
      console.log(`turn ${hosted.turn}  ${name}  ${bytes} bytes  ${digest.slice(0, 16)}…`);
  }
' "$work/receipts.json" | show
holds 'each receipt has the skill with the digest of its file' \
  'bundle().every(({ context }) => context[0].name === "skill:house-rules" && context[0].digest === digestOf("skills/house-rules.md"))'
holds 'the first turn sees no turn before it' 'bundle()[0].context.length === 1 && bundle()[0].hosted.previous === undefined'
holds 'the others see a summary of the receipt before theirs, with its digest, and nothing else' \
  'bundle().slice(1).every(({ context }, i) => context.length === 2 && context[1].name === `receipt:${bundle()[i].turn}` && /^[0-9a-f]{64}$/.test(context[1].digest))'
ask receipts
holds 'each receipt names the one before' \
  'bundle().slice(1).every(({ hosted }, i) => hosted.previous === it.receipts.find(({ turnId }) => turnId === bundle()[i].turn).id)'

section 'c. Refusals'
store refusals
ask host start wide-turn
work
ask host status wide-turn
holds 'a turn with a wider grant than its loop is refused, and stops it' \
  'it.status === "stopped" && it.reason === "refused" && it.message.includes("GRANT_WIDENED")'
ask receipts
echo "    refused  $(member receipts.0.id)"
holds 'the refusal is sealed' 'it.receipts.length === 1 && it.receipts[0].state === "refused" && isReceipt(it.receipts[0].id)'
ask host start clean-up
work
turns clean-up
run events hosted:clean-up:1 --text > "$work/events.txt"
show < "$work/events.txt"
that 'the model asks for a tool that is not in allowedTools, and gets a refusal' \
  grep -q 'delete-tickets failed: The grant does not permit "delete-tickets"' "$work/events.txt"
that 'no tool was started' ledger_has 0
ask host status clean-up --turns
holds 'the loop stops at an output that it declares as terminal' 'it.reason === "terminal" && it.turnList.length === 1'

section 'd. An approval: pause, answer, resume'
store approval
ask host start pay-refunds
work
ask host status pay-refunds
holds 'the turn waits for a person; no process runs' 'it.status === "waiting" && it.reason === "approval" && it.turns === 1'
that 'nothing is paid yet' ledger_has 0
ask host pause pay-refunds --as ada --reason 'end of the month'
holds 'the loop is paused' 'it.status === "paused" && it.message === "Paused by ada: end of the month"'
ask approvals
approval=$(member approvals.0.id)
echo "    approval  $approval"
holds 'the approval shows the exact call' 'it.approvals[0].arguments.order === "1017" && it.approvals[0].arguments.amount === 4000'
ask approve "$approval" --as bob
work
that 'an answer is recorded while the loop is paused, and nothing is paid' ledger_has 0
ask host resume pay-refunds --as ada
work
that 'after it was resumed, the refund is paid once' ledger_has 1
ask host status pay-refunds --turns
holds 'the loop continues: turn 2 waits for an approval of its own' \
  'it.reason === "approval" && it.turnList.length === 2 && it.turnList[0].status === "ok" && it.turnList[1].status === "open"'
ask approvals
run deny "$(member approvals.0.id)" --as bob --reason 'paid before'
work
turns pay-refunds
ask host status pay-refunds --turns
holds 'a denial stops the loop, although it may have five turns' 'it.status === "stopped" && it.reason === "approval" && it.turnList.length === 2'
that 'a denied refund is not paid' ledger_has 1

section 'e. A budget'
store budget
ask host start small-budget
work
turns small-budget
ask host status small-budget --turns
holds 'all turns share two rounds of the model, and the third turn stops at that' \
  'it.status === "stopped" && it.reason === "budget" && it.turnList.map(({ status }) => status).slice(0, 2).join() === "ok,ok" && it.turnList[2].status !== "ok"'
holds 'the third turn has a receipt too' 'it.turnList.length === 3 && isReceipt(it.turnList[2].receipt)'
export_receipts
holds 'no receipt says that the third turn called the model' \
  'bundle().filter(({ hosted }) => hosted.turn === 3).every(({ effects }) => effects.length === 0)'

section 'f. Pause and resume'
store mail
ask host start on-mail
holds 'without a signal, no turn is due' 'it.status === "waiting" && it.reason === "signal" && it.nextAt === undefined'
ask host pause on-mail --as ada --reason lunch
ask signal on-mail mail --id mail-1 --payload '{"ticket":1}'
that 'a paused loop accepts a signal' exited_with 0
work
ask host status on-mail
holds 'a paused loop starts no turn' 'it.status === "paused" && it.turns === 0 && it.signals === 1'
ask host resume on-mail --as ada
work
ask host status on-mail
holds 'resumed, it runs the turn of the signal' 'it.status === "waiting" && it.turns === 1 && it.signals === 0'

section 'g. Signals'
ask signal on-mail mail --id mail-2 --payload '{"ticket":2}'
ask signal on-mail mail --id mail-2 --payload '{"ticket":2}'
that 'the same signal may be sent again' exited_with 0
work
ask signal on-mail mail --id mail-2 --payload '{"ticket":2}'
work
turns on-mail
ask host status on-mail --turns
holds 'three deliveries with one id cause one turn' \
  'it.turnList.length === 2 && it.turnList[1].cause === "signal" && it.turnList[1].signal === "mail-2"'
ask signal on-mail mail --id mail-3 --payload '{"ticket":"all"}'
that 'a payload that does not fit its schema is refused' exited_with 1
ask signal on-mail gift --id gift-1 --payload '{"ticket":1}'
that 'a signal that the loop does not declare is refused' exited_with 1

section 'h. Tampering'
export_receipts
run keys show --json > "$work/keys.json"
origin=$data
data=$work/elsewhere
ask verify "$work/receipts.json" --keys "$work/keys.json"
that 'the exported receipts are valid, without the store' exited_with 0
holds 'the verdict says so' 'it.valid === true'
node -e '
  const fs = require("node:fs");
  const [from, to] = process.argv.slice(1);
  const bytes = fs.readFileSync(from);
  const at = bytes.indexOf("\"payload\":\"") + 200;
  bytes[at] = bytes[at] === 0x41 ? 0x42 : 0x41;
  fs.writeFileSync(to, bytes);
' "$work/receipts.json" "$work/changed.json"
ask verify "$work/changed.json" --keys "$work/keys.json"
that 'with one byte changed, verify exits with 3' exited_with 3
holds 'and says what is wrong' 'it.valid === false && it.reasons.length > 0'
echo "    reasons  $(member reasons.0), $(member reasons.1)"

cp -R "$origin" "$work/altered"
data=$work/altered
node -e '
  const fs = require("node:fs");
  const bytes = fs.readFileSync(process.argv[1]);
  bytes.write("\"label\":\"praise\"", bytes.indexOf("\"label\":\"refund\""));
  fs.writeFileSync(process.argv[1], bytes);
' "$data/journal.db"
ask signal on-mail mail --id mail-4 --payload '{"ticket":3}'
run worker --once > "$work/results.txt"
that 'where the output of turn 2 was altered in the store, there is no turn 3' grep -q 'not continued here. STORE_DAMAGED' "$work/messages"
ask verify --all
that 'and the verification of that store exits with 3' exited_with 3

data=$origin
run remove hosted:on-mail:2 --yes --as mallory
ask signal on-mail mail --id mail-4 --payload '{"ticket":3}'
work
ask host status on-mail
holds 'after the session of turn 2 was removed, there is no turn 3' 'it.turns === 2'
holds 'the loop stops, because the receipt before is missing' 'it.status === "stopped" && it.reason === "missing_receipt"'
ask verify --all
holds 'the verification of the store names the removal' 'it.complete !== true && it.reasons.includes("session_removed")'

section 'i. The harness'
store harness
loops=$given
ask harness "$here" --receipt-dir "$work/harness-receipts"
that 'the declared cases pass' exited_with 0
holds 'each case has a verdict and receipts' \
  'it.ok === true && it.cases.length >= 5 && it.cases.every(({ ok, receipts, verdict }) => ok && receipts.length > 0 && verdict.valid)'
ask verify "$work/harness-receipts/refund-approved.receipts.json" --keys "$work/harness-receipts/keys.json"
that 'their receipts are verified outside of it' exited_with 0

printf '\nAll assertions hold.\n'
