// The requirements of the project, by id. Tests cite ids with verifies(). spec/house/requirements.test.ts rejects an id
// that no test cites, and the compiler rejects a citation of an unknown id.

import { contextRequirements } from './context-requirements.js';
import { grantRequirements } from './grant-requirements.js';
import { hostedRequirements } from './hosted-requirements.js';
import { houseRequirements } from './house-requirements.js';
import { planRequirements } from './plan-requirements.js';
import { receiptRequirements } from './receipt-requirements.js';
import { verdictRequirements } from './verdict-requirements.js';

/** The text of each requirement, by id. */
export const requirements = {
  ...houseRequirements,
  ...hostedRequirements,
  ...grantRequirements,
  ...contextRequirements,
  ...planRequirements,
  ...verdictRequirements,
  ...receiptRequirements,
  'docs.output': 'The output that the documents promise is the output that their code and commands print.',
  'docs.cookbook': 'The programs of the cookbook are quoted as they are, run, and print what they promise.',
  'docs.quickstart': 'The quickstart and the guide to hosted loops, followed from top to bottom, print what they show.',
  'docs.package':
    'The package contains its documentation, and every link between its documents leads to a file of the package.',
  'docs.reference': 'The API reference is generated from the comments of the exports, each of which has one.',
  'docs.format': 'The code in the documents has at most one statement on a line.',
  'host.work': 'A worker continues what is due, each turn once, in any number of processes on one store.',
  'host.restart':
    'Servers on one store can be restarted at any time: the others continue their turns within 2 seconds, and no turn or effect is lost or duplicated.',
  'rondo.run':
    'A loop runs without configuration; its result narrows by status, and `output` throws for every other status.',
  'rondo.options': 'An unknown option or store is refused with a message that names the known ones.',
  'rondo.direct': 'A loop called like a function runs in memory, and throws inside of another loop.',
  'rondo.turn':
    'A handle reaches its turn from any process: it returns results and events, answers approvals and continues the turn.',
  'scope.effect': 'An effect can be a name and a function with a safety and a policy, recorded like any other effect.',
  'agent.call': 'A loop in code calls an agent like any other loop, in every process that runs it.',
  'rondo.close':
    'Closing interrupts running turns after their effects, and waits for no other process; a later runtime continues them.',
  'kernel.once':
    'A keyed entry is written to the journal of a session once; a second request returns the recorded one.',
  'kernel.ack': 'Nothing is reported before every entry that it depends on is durable.',
  'kernel.intent':
    'The intent of a non-pure effect is durable before the effect starts; its result is recorded when it ends.',
  'kernel.doubt':
    'An intent without a result is handled by its declared safety: repeated, repeated under the same key, or held until it is resolved.',
  'kernel.repeated': 'Before an interrupted effect that is not pure is performed again, that is durably recorded.',
  'kernel.replay':
    'A replay that does not match the journal stops the turn and names the recorded and the requested step.',
  'kernel.fault': 'A failed append ends the attempt; no body observes it, and nothing is written after it.',
  'kernel.cancel':
    'After a cancel no effect starts, in this process or a later one; an effect in flight is recorded when it ends.',
  'kernel.parallel': 'Keys and results of parallel steps do not depend on their speed.',
  'kernel.race': 'The winner of a race is recorded, a replay returns the same winner, and the other branches stop.',
  'kernel.scope':
    'A scope runs one step at a time and none after its body has ended; a body that violates this ends the turn.',
  'kernel.close': 'Closing waits for effects in flight; nothing is performed or written after it.',
  'kernel.timer': 'A timer never fires early and survives a restart.',
  'time.monotonic':
    'Durations within a process are measured by the monotonic clock: setting the wall clock back stalls nothing, and setting it forward ends nothing early.',
  'time.restart':
    'After a restart a recorded period ends by the wall clock, and never takes longer than its full length.',
  'time.text':
    'A duration as text has exactly the milliseconds that it names; any other text is refused with examples.',
  'time.stamps': 'Nothing ends before it began, and no duration is negative, when the wall clock is set back.',
  'kernel.signal': 'A signal is delivered once for each delivery id, whenever it arrives.',
  'kernel.signal.address':
    'A signal that is addressed to a turn is received by that turn only; of all signals that a turn may receive, the oldest is first.',
  'kernel.signal.type':
    'A wait with a schema returns the parsed payload; a payload that does not fit is discarded with a warning, and the wait continues.',
  'host.signal':
    'A signal reaches its turn from any process, once for each delivery id; what cannot be delivered is refused with the reason.',
  'kernel.pause': 'A turn that nothing in the process can continue ends as a pause that names what is pending.',
  'kernel.leaf':
    'A call that is its own effect is recorded as two entries, which mean the same as those of a call with one effect.',
  'kernel.layer': 'Layers wrap every effect; a recorded result does not pass through them again.',
  'kernel.value':
    'Only JSON of bounded depth and size is journaled, as a private copy; any other value is refused with its location.',
  'kernel.blob': 'A large value is stored once, by digest, and accepted only if it matches the digest.',
  'kernel.view': 'A view folds entries in the same way live and on replay.',
  'kernel.snapshot': 'A snapshot is a cache: it can be deleted, and one of another journal is ignored.',
  'kernel.invariant': 'A proposed entry that breaks an invariant is refused before it is written.',
  'kernel.version': 'Old entries are upgraded when they are read; entries of a newer program are refused.',
  'kernel.fence': 'Only the newest claim of a session can write to it.',
  'kernel.depth': 'Calls nest to a bounded depth.',
  'kernel.pressure': 'A slow store applies backpressure to the turn; memory does not grow with the length of a turn.',
  'kernel.options': 'An unknown option is refused, so that a misspelled one never disables a guard.',
  'kernel.crash': 'A crash before or after any append loses no entries, and adds none but those of repeated effects.',
  'kernel.kill': 'A process that is killed at any time and started again loses nothing and performs nothing twice.',
  'kernel.due':
    'A turn that can continue is in the index of due turns with its time; a turn that has ended or only waits is not.',
  'journal.due':
    'The index of due turns is written in the same commit as the entries; one that was lost is reported and rebuilt.',
  'journal.cases': 'Every store passes the journal cases, and a store that breaks its contract fails them.',
  'sqlite.owner':
    'One process owns a store and the others share it; a dead owner is replaced, a live one never, and one that lost ownership cannot write.',
  'sqlite.repeat': 'An operation whose answer was lost is requested again, and performed once.',
  'sqlite.socket': 'Owner and client authenticate each other before anything else is sent.',
  'sqlite.silence':
    'A process that does not respond is reported with its pid, its state and what to do, within ten seconds.',
  'sqlite.files': 'The files of a store are private, never opened through a link, and their disappearance is detected.',
  'store.leases': 'One process at a time runs the turns of a session, and the others reach that process.',
  'store.turns':
    'A request about a turn that runs in another process is executed there, once, and its result is reported.',
  'sqlite.commit': 'Concurrent sessions share a commit, and a refused append does not affect the others.',
  'sqlite.failure': 'A full, read-only or failing disk acknowledges nothing and loses nothing that was acknowledged.',
  'sqlite.damage': 'No damaged record is read as if it were intact, and no missing record goes unreported.',
  'sqlite.anchor': 'A truncated tail is detected as far back as the last anchored head, and the report names both.',
  'sqlite.record':
    'Detected damage is recorded in the database until it is accepted by name or its session is removed.',
  'sqlite.verify':
    'A store of any size is verified in steps, by its owner or through it, and every affected session is named.',
  'sqlite.schema': 'The schema only moves forward; a database of a newer program is refused.',
  'sqlite.retention': 'A removed session leaves nothing that a later session of the same name could read.',
  'store.processes':
    'Several processes on one store finish every turn and perform every effect once, whichever of them is killed.',
  'lsem.3.kind': 'A loop is exactly one of prompt, composite and tool, and has the body of its kind and no other.',
  'lsem.4.shape':
    'A definition has the members that LSEM (the Loop Stack Execution Model) names, with their types; a missing one is reported.',
  'lsem.4.unique':
    'An id and version is registered once; different content under it is refused, and a turn never changes its definitions.',
  'lsem.4.schemas':
    'Input and output each declare a JSON Schema (draft 2020-12); an unusable schema is refused at registration.',
  'lsem.4.input': 'Every input is validated first, and an invalid one reaches no body.',
  'lsem.4.output': 'Every output is validated before a result is reported as ok.',
  'lsem.5.prompt': 'A prompt goes through its lifecycle in order and emits each event once.',
  'lsem.5.tool': 'A tool goes through its lifecycle in order and emits each event once.',
  'lsem.5.composite': 'A composite frames the whole lifecycle of each child with child.started and child.completed.',
  'lsem.5.body':
    'An effect of a code body that belongs to no loop is a rondo.effect event, never an event of a prompt or a tool.',
  'lsem.5.transition': 'Every transition emits an event, and every call has one last event.',
  'lsem.5.failure': 'Every failure inside of a call ends in call.errored, never in an exception without a result.',
  'lsem.6.event': 'Every event has a callId, an ISO 8601 time and a type.',
  'lsem.6.call.started': 'call.started carries loopId, loopVersion and, for a child, parentCallId.',
  'lsem.6.call.input.validated': 'call.input.validated carries durationMs.',
  'lsem.6.call.backend.requested':
    'call.backend.requested carries backendId, the model that is really called, and promptLength.',
  'lsem.6.call.backend.responded': 'call.backend.responded carries durationMs, inputTokens and outputTokens.',
  'lsem.6.call.tool.invoked': 'call.tool.invoked carries toolName.',
  'lsem.6.call.tool.returned': 'call.tool.returned carries durationMs.',
  'lsem.6.child.started': 'child.started carries childCallId, loopId and stepIndex.',
  'lsem.6.child.completed': 'child.completed carries childCallId and status.',
  'lsem.6.call.output.validated': 'call.output.validated carries the durationMs of the validation alone.',
  'lsem.6.call.completed': 'call.completed carries totalDurationMs.',
  'lsem.6.call.errored': 'call.errored carries code, message and, if there are any, details.',
  'lsem.6.log': 'A body of any kind can log a level and a message.',
  'lsem.6.vendor': 'Other event types use a namespace of their own, and none redefines a core type.',
  'lsem.7.order': 'Steps run in order, and none starts after one that failed.',
  'lsem.7.mapping':
    'The input of a step is mapped from the outer input and earlier results; a path without a match is an error.',
  'lsem.7.binding': 'Later steps can read the result of a step under its name; earlier steps cannot.',
  'lsem.7.binding.result': 'A binding is the complete LoopResult of its step, and the same on every replay.',
  'lsem.7.output': 'The output of a composite is that of its last step, or the result of its outputMapping.',
  'lsem.9.conformance': 'The five points of conformance hold, as checked by the suite.',
  'lsem.suite': 'The conformance suite can check any runtime, and reports every check.',
  'lsem.suite.text': 'No check of the suite requires more than the specification, and none fails by its own fault.',
  'lsem.suite.known':
    'A failure that a driver declares as known is reported with its reason; a known failure that no longer occurs is reported too.',
  'lsem.suite.driver': 'rondo conformance --driver checks any runtime, however its driver behaves.',
  'lsem.mutants': 'Each check of the suite is failed by a runtime that is wrong in exactly that respect.',
  'definition.keys': 'An unknown key of a definition is refused, so that a misspelled one never disables a guard.',
  'definition.near-miss':
    'A misspelling of policy is refused; a misspelling of any other top-level member is accepted with a warning.',
  'definition.ids': 'Every id that LSR (the LSEM reference runtime) accepts is accepted, except for ambiguous ones.',
  'definition.place': 'A bad definition is reported with file, path and reason.',
  'definition.failed':
    'A request for a loop whose definition failed to load reports that failure with its place, also from a caller.',
  'definition.load':
    'JSON, TOML and code of a directory load together, and a bad file does not prevent the others from loading.',
  'definition.code': 'A loop in code is equivalent to a definition, with types inferred from its schemas.',
  'definition.pin': 'A turn continues with the definitions that it began with, whatever the registry contains later.',
  'config.keys': 'An unknown key of the configuration is refused.',
  'fuzz.definitions': 'No definition, however broken, crashes, hangs or fails without a typed error.',
  'fuzz.inputs': 'No input, however broken, crashes, hangs or fails without a typed error.',
  'schema.valid': 'A value passes exactly if JSON Schema 2020-12 accepts it.',
  'schema.registration': 'An unusable schema is refused at registration, with its location.',
  'schema.linear': 'No pattern takes more than linear time.',
  'schema.pure': 'Validation changes nothing and fills in no defaults.',
  'schema.suite': 'The public JSON Schema suite passes, except for the listed cases, each with its reason.',
  'path.rfc9535': 'Paths follow RFC 9535.',
  'path.suite': 'The public JSONPath suite passes.',
  'path.bounds': 'The matches and the time of a path are bounded.',
  'model.port': "Every model that implements the AI SDK's provider interface can be used.",
  'model.option': 'Wherever code names a model, a model object, a text or a reference is accepted and used as given.',
  'model.required':
    'A prompt without a model is refused with a list of the options; mock answers only where it is named.',
  'model.mock': 'The mock model returns the same answer each time, and one that fits the schema.',
  'model.scripted': 'A scripted model answers from its script, in order, across restarts.',
  'model.http': 'The providers work against a server that implements their API.',
  'model.failure': 'Every failure of a model is a typed error that tells whether a retry is useful.',
  'model.observed': 'A turn has the same entries whether or not it is watched.',
  'model.secret': 'No secret reaches a definition, a journal or a message.',
  'prompt.template':
    'A template substitutes each variable once; a missing variable is an error, and no value is expanded again.',
  'prompt.reply': 'A reply is parsed against the output schema, and one that does not fit is repaired at most once.',
  'tool.builtin': 'Built-in tools behave as documented.',
  'tool.module': 'A module tool runs a function of a file next to its definition.',
  'tool.exec': 'A program receives its input on stdin and answers on stdout, within limits.',
  'tool.http': 'An HTTP tool posts its input, within limits, with an idempotency key.',
  'tool.trust':
    'Code runs only from a directory that the operator trusts, and a recorded turn continues only with the trust that it needs.',
  'authority.trust':
    'Trust comes from the operator: flags, environment and a file outside of the project, never from the project or its journal.',
  'authority.env-file':
    'Only keys are read from .env, only in a trusted directory, and never over an existing variable.',
  'definition.schema': 'The published JSON Schemas accept what the parsers accept, and refuse what they can express.',
  'definition.scripts': 'Loading definitions never runs a script that defines no loop.',
  'definition.typescript': 'TypeScript definitions run natively, through tsx or jiti, or are refused with advice.',
  'authority.calls':
    'A turn that runs what needs trust consists of trusted parts only: no file of another directory calls it, replaces a part of it or decides one, wherever it is named from.',
  'authority.verbs': 'No verb executes anything from an untrusted directory.',
  'authority.paths': 'An untrusted project reads and writes only inside of its own directory.',
  'authority.send':
    'An environment variable is sent only to hosts that the operator permitted for it; keys of known providers go to their own hosts.',
  'authority.reach': 'An untrusted project reaches public addresses only, unless the operator permitted the host.',
  'tool.orphan': 'No tool leaves a process behind.',
  'secret.echo': 'A secret that is echoed, completely, in parts or encoded, reaches no error, result or journal.',
  'tool.env': 'A tool receives no environment variable that was not passed to it explicitly.',
  'policy.filter': 'Content that a filter refuses is neither sent nor returned.',
  'policy.cache': 'A cached answer belongs to the same request, and is not too old.',
  'policy.fallback': 'When a backend fails, the next one is called.',
  'policy.retry':
    'A failure is retried, within limits, unless repeating it cannot change it; an effect that must happen once never is.',
  'policy.rate': 'No more requests are sent in a window than the policy allows.',
  'policy.timeout': 'An effect that takes too long ends with TIMEOUT, even if it ignores its AbortSignal.',
  'policy.order': 'Layers have a fixed order, and an effect without a policy has no overhead.',
  'policy.applies': 'Each key of a policy takes effect on its loop, or the definition is refused with an alternative.',
  'policy.call': 'A timeout on a composite ends the complete call, at any step, and across restarts.',
  'policy.backend':
    'A backend that is not configured is refused, with a suggestion; one that cannot be opened counts as failed.',
  'policy.approval': 'A policy that requires an approval that cannot be given refuses the call.',
  'policy.replay': 'The decisions of layers are recorded, and a replay makes the same ones.',
  'turn.key': 'The same key is the same turn; the same key with different content is refused.',
  'identity.injective': 'An id that is composed of parts differs for every different list of parts.',
  'identity.code':
    'The identity of a loop in code is its id, version and definition: compiled, bundled or reformatted code continues its turns and approvals.',
  'identity.change':
    'A changed definition of a loop in code is reported by the names of the changed options, with what to do.',
  'identity.build': 'The build of the operator is recorded with each turn, and its approvals are bound to it.',
  'identity.reload': 'A loop in code that is redefined under its version is used by new turns only.',
  'identity.principal': 'A key belongs to its principal: the same key of another principal is another turn.',
  'turn.resume': 'A turn whose process died can be resumed by another process, by its id alone.',
  'turn.retry':
    'A failed turn can be retried: it continues where it failed, and what succeeded is not performed again.',
  'turn.errors':
    'An error keeps its cause, and a stack that begins in the code of the user, in the process and in the journal.',
  'turn.replay': 'A replay performs nothing and reports whether the code still matches the journal.',
  'turn.status': 'The status of every turn can be read.',
  'turn.waits':
    'A turn holds its caller for no wait of more than ten seconds, and shows what each of its branches waits for.',
  'turn.listed': 'A running turn is listed from its first moment, whatever its safety, in every process.',
  'turn.details': 'Input, prompts, replies, output and tokens of every call can be read.',
  'turn.follow': 'A session can be followed from any process, without gaps or repetition.',
  'turn.trace': 'The streamed events are the events of the result.',
  'cli.contract': 'Verbs, fields and exit codes match the published surface.',
  'cli.help': 'Every verb has help with an example.',
  'cli.init': 'rondo init creates a project whose test and loops run at once, and never overwrites a file.',
  'cli.dev': 'rondo dev reloads definitions when they change; running turns keep those that they began with.',
  'cli.completion': 'Completion offers verbs, flags and ids, and evaluates nothing that a project contains.',
  'cli.progress': 'A turn that takes longer than a second shows its progress on a terminal, and nowhere else.',
  'cli.tree': 'The tree of a turn shows nesting, durations, tokens and cost, in colour only on a terminal.',
  'cli.inspect': 'The verbs that inspect a turn show its values, shortened for people unless all are requested.',
  'cli.follow': 'A follower prints everything new until the turn ends, whichever process runs it.',
  'cli.times': 'Times are relative for people and ISO 8601 for programs.',
  'cli.server':
    'While a server runs, every verb works on its store, and a second program starts and resumes turns with its own code.',
  'cli.owner': 'Verbs of several processes share one store, and a verb for a turn reaches the process that runs it.',
  'cli.start': 'A verb loads only what it needs.',
  'cli.output':
    'The exit code is that of the turn, even if the output fails; a success whose output is lost is not reported as one.',
  'cli.escape': 'No output of a verb can control a terminal, and escaped JSON parses to the same value.',
  'cli.damage':
    'Damage stays recorded until it is accepted by name; a store of any size can be verified, and the removal of a session is recorded.',
  'cli.input': 'Bad input is a typed error with its location, and nothing is written in part.',
  'example.runs': 'Every example runs without a key and verifies itself.',
  'docs.errors': 'The page of errors is generated from the table of codes.',
  'compare.runs': 'The programs of the comparison run in every version and print the same result.',
  'compare.counts':
    'A program in Rondo needs no more lines and concepts than the same program in the AI SDK and in Mastra.',
  'types.matrix':
    'The published types are clean with the compilers and settings that consumers use, without skipLibCheck.',
  'types.schema': 'A JSON Schema literal has the type of the values that it accepts, and never a narrower one.',
  'types.signal': 'The type of a payload is inferred from the schema of its signal, for waits and for senders.',
  'types.budget': 'The type checker stays within a budget for a project of fifty loops.',
  'looops.export.events': 'rondo/events contains types and one list: no AI SDK, nothing at run time but the list.',
  'looops.export.tools': 'rondo/tools exports LoopsTool, LoopsToolSet, ApprovalRequiredError and loopsTool().',
  'looops.export.streaming': 'rondo/streaming exports the stream handlers and their shapes: types only.',
  'looops.export.protocol': 'rondo/protocol exports everything.',
  'looops.export.subpaths':
    'rondo/protocol/events, /tools and /streaming resolve to the modules of rondo/events, /tools and /streaming.',
  'looops.event.types': 'EVENT_TYPES lists the twelve types in order, and narrowing by type is exhaustive.',
  'looops.envelope': 'An envelope is generic over its time, which is ISO 8601 text by default.',
  'looops.event.user-message': 'A prompt of the user is a user-message with its text.',
  'looops.event.assistant-message': 'Text of the model is an assistant-message.',
  'looops.event.tool-call':
    'A tool call of the model is a tool-call with id, name, args and the state of its approval.',
  'looops.event.read-only': 'Each tool call reports whether the tool is read-only, true or false.',
  'looops.event.tool-result': 'The result of a tool is a tool-result with its value and its streamed output.',
  'looops.event.tool-error': 'A tool that threw or was rejected is a tool-error that distinguishes the two.',
  'looops.event.reasoning': 'A block of reasoning is a reasoning event with its text and duration.',
  'looops.event.trigger': 'A generation that a timer or a webhook started begins with a trigger event.',
  'looops.loop': 'A turn whose root is no agent has envelopes for its input, its output and its failure.',
  'looops.event.loop-triggered': 'The start of a child is an event that names its initiator.',
  'looops.event.child-generation': 'A finished child is summarised on its parent.',
  'looops.event.other-agent-message': 'A message of another agent is distinguishable from one of the assistant.',
  'looops.event.user-abort': 'A generation that the user stopped is reported as such.',
  'looops.event.generation-failure': 'A generation that failed before its end reports the reason.',
  'looops.policy.always_allow': 'A tool that is always allowed runs without an approval.',
  'looops.policy.ask': 'A tool with the policy ask runs only after its description was approved.',
  'looops.policy.blocked': 'A blocked tool does not run.',
  'looops.tool.factory': 'loopsTool() is a drop-in replacement for tool(): the same tool works in the AI SDK and here.',
  'looops.tool.delta': 'Streamed output of a tool reaches the subscribers.',
  'looops.handler.onAssistantMessage': 'Called when a message of the assistant begins.',
  'looops.handler.onAssistantMessageDelta': 'Called for each delta of a message.',
  'looops.handler.onReasoningStart': 'Called when reasoning begins.',
  'looops.handler.onReasoningDelta': 'Called for each delta of reasoning.',
  'looops.handler.onToolCall': 'Called when the model calls a tool.',
  'looops.handler.onToolResult': 'Called when a tool returns a result.',
  'looops.handler.onToolNotFound': 'Called when the model calls a tool that does not exist.',
  'looops.handler.onToolError': 'Called when a tool fails.',
  'looops.handler.onToolOutputDelta': 'Called when a tool streams output.',
  'looops.handler.onToolApprovalRequired': 'Called when a tool call waits for an approval.',
  'agent.rounds': 'An agent calls its model and runs the chosen tools until the model is done.',
  'agent.names':
    'A tool whose id is no valid tool name for providers gets another name for the model only; two tools of one name are refused.',
  'agent.once': 'Every message of a conversation is stored once, and storage grows only with new messages.',
  'agent.parallel': 'Tool calls of one reply run in parallel, and their results keep the order of the calls.',
  'agent.inline':
    'A tool defined inline in an agent has the id AGENT.NAME and the model name NAME, so two agents may use one name.',
  'agent.refused': 'An unknown tool, bad arguments and a tool that throws become results that the model receives.',
  'agent.output': 'The final answer fits the output schema, or is repaired once, or is an error.',
  'agent.sub':
    'Sub-agents and handoffs are child calls, and the result of a handoff is the result of the agent that handed over.',
  'agent.steer': 'A message that arrives while the agent runs is delivered at the next round, or at the end.',
  'agent.abort': 'An abort stops the stream at once and is journaled.',
  'agent.stop': 'Rounds, tokens and deadlines end an agent as a result with a reason, never as success.',
  'agent.history': 'A later turn of a session includes the earlier ones, from the journal alone.',
  'agent.stream': 'Streamed content equals journaled content, and streaming changes nothing.',
  'agent.reconnect': 'A client that reconnects receives the remaining events, each once.',
  'agent.hostile': 'No model, however hostile, hangs, crashes or acts without permission.',
  'agent.document': 'An agent in JSON, in TOML and in code is the same agent.',
  'agent.crash': 'An agent that is killed at any entry continues and performs nothing twice.',
  'approval.bound': 'An approval applies to one call with its exact tool, definition, arguments, person and time.',
  'approval.once': 'An approval is used once, even if several answers arrive.',
  'approval.forged':
    'An answer that is forged, stale, replayed, expired or not authorised runs nothing and is journaled.',
  'approval.depth': 'An approval shows and binds the leaf action at any depth, and can be answered from any process.',
  'approval.order': 'Pending approvals can be answered in any order, and each answer reaches its own call.',
  'approval.gate': 'Every way to start a tool passes the same gate.',
  'approval.standing': 'A standing grant applies only where its written predicate holds.',
  'approval.limits': 'A standing grant limits the value or range of at least one argument, and is refused otherwise.',
  'approval.modes': 'Every agent that requires approvals does so in its own mode; an inner agent can only narrow.',
  'approval.default': 'A tool that defines requestApproval requires an approval unless it is explicitly allowed.',
  'approval.option':
    "approval: 'ask' or requestApproval on a tool is sufficient, here and under the AI SDK; only its name switches it off.",
  'approval.again':
    'An approval of a call whose definition or build has changed is requested again, never refused silently.',
  'approval.target': 'An approval applies only to the program bytes and the real path that were shown.',
  'approval.bytes':
    'A module runs from the approved bytes; a program whose file changes while it starts is stopped and fails.',
  'approval.display': 'The text that a person is shown is escaped and bounded.',
  'approval.hidden':
    'An approval states exactly how much of its text is hidden, shows the end of a truncated text, and one command prints all of it.',
  'approval.kill': 'A kill at any point around an approval performs its tool at most once.',
  'toolbox.files': 'Files are listed, viewed and searched within limits.',
  'toolbox.edit': 'Files are written and edited atomically, with the diff that was shown.',
  'toolbox.command': 'A command runs confined, within limits, and leaves no process behind.',
  'toolbox.fetch': 'The address that was checked is the address that is connected to.',
  'toolbox.confined': 'No path leads out of the roots, even in a symlink race.',
  'toolbox.store': 'Toolbox, http: and sandboxed tools cannot open the files of a store.',
  'toolbox.data':
    'No root, sandbox or tool of the toolbox reaches a data directory, under any name and from any process.',
  'toolbox.data.new': 'A store that is created while a sandboxed command runs is never visible to the command.',
  'toolbox.data.planted': 'No file that a command writes blocks a file or directory for the tools that may use them.',
  'toolbox.isolation':
    'A sandboxed command inherits no descriptor, no socket type and no directory that was not intended for it.',
  'toolbox.keyring': 'A sandboxed command cannot reach the kernel keyrings of the operator.',
  'toolbox.limits':
    'A sandboxed command is limited in processes, memory, file size and time, and the exceeded limit is reported.',
  'toolbox.ask': 'Tools that change something require an approval by default.',
  'aisdk.chat': 'An agent serves useChat, and history sent by the client is never trusted.',
  'aisdk.identity': 'A chat or a tool call never reaches the turn, the stream or the session of another user.',
  'aisdk.origin':
    'A chat is served only to JSON requests of its own origin, or of one that the operator permits, at its own host.',
  'aisdk.tool': 'A loop can be passed to the AI SDK as a tool, including its approval gate.',
  'cli.chat': 'A chat in a terminal streams, shows tools and diffs, and requests approvals.',
  'cli.signal':
    'A signal can be sent from the command line to a turn or session, whichever process runs it; a waiting turn prints the command.',
  'cli.decide': 'Approvals are listed and answered from the command line.',
  'demo.resume': 'The demo kills a turn in the middle, finishes it in a second process, and performs nothing twice.',
} as const satisfies Record<string, string>;

/** The id of a requirement. */
export type RequirementId = keyof typeof requirements;
