/**
 * `rondo completion`: prints the completion script of a shell, or the ids that complete the argument of a verb. The
 * scripts contain the verbs and flags, and call `rondo completion ids VERB` for ids.
 */
import { loadLoops, loadSettings } from '../../compose.js';
import { type SettingsInput, UsageError } from '../../settings.js';
import { completionScripts, type IdKind, idKindOf } from '../completion-scripts.js';
import { openHostForReading } from '../open-host.js';
import type { Terminal } from '../terminal.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';
import { verbs } from '../verbs.js';

/**
 * The characters of ids that are offered. A project may come from a stranger: an id such as `$(command)` must not reach
 * a shell.
 */
const SAFE_ID = /^[A-Za-z0-9_./:@#+-]+$/;

/** The maximum number of ids that are offered. */
const MAX_IDS = 200;

/** Handles `rondo completion`. */
export const completion: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const [what, verbName] = args.map((argument) => textOption(argument));
  if (what === 'ids') {
    const ids = (await idsFor(verbName, settingsInput, terminal)).filter((id) =>
      /* guard: completed-ids-are-plain */ SAFE_ID.test(id),
    );
    const offered = [...new Set(ids)].slice(0, MAX_IDS);
    if (json) await terminal.printJson({ ids: offered });
    else await terminal.print(offered.map((id) => `${id}\n`).join(''));
    return exitCodes.ok;
  }
  const script = completionScripts.get(what ?? '');
  if (script === undefined) {
    throw new UsageError(
      `There is no completion for "${what}"; the shells are ${[...completionScripts.keys()].join(', ')}.`,
    );
  }
  if (json) await terminal.printJson({ shell: what, script: script(verbs) });
  else await terminal.print(script(verbs));
  return exitCodes.ok;
};

async function idsFor(
  verbName: string | undefined,
  input: SettingsInput,
  terminal: Terminal,
): Promise<readonly string[]> {
  const verb = verbs.find(({ name }) => name === verbName);
  if (verb === undefined) throw new UsageError(`There is no verb "${verbName ?? ''}". See: rondo --help`);
  const kind = idKindOf(verb);
  return kind === undefined ? [] : idsOfKind(kind, input, terminal);
}

async function idsOfKind(kind: IdKind, input: SettingsInput, terminal: Terminal): Promise<readonly string[]> {
  const settings = await loadSettings(input);
  if (kind === 'loop') return (await loadLoops(settings)).registry.list().map(({ definition }) => definition.id);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    if (kind === 'approval') return (await host.archive.approvals()).map(({ id }) => id);
    const turns = await host.archive.turns();
    return turns.map(({ turnId, sessionId }) => (kind === 'turn' ? turnId : sessionId));
  } finally {
    await close();
  }
}
