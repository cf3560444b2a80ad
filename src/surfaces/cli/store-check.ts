/** The store as `doctor` sees it: what is on its record, what a full check finds, and which losses are accepted by name. */
import type { Damage, Incident, Maintenance, MaintenanceLog, VerifyCursor } from '../compose.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';
import { formatDuration, formatInteger, sanitizeText } from './terminal-text.js';

/** What the full check has looked at. */
export interface StoreVerification {
  readonly sessions: number;
  readonly entries: number;
  readonly damage: readonly Damage[];
  readonly skippedStructure: boolean;
}

/** How often a progress line is written where nobody watches, in milliseconds. */
const LOG_INTERVAL_MS = 10_000;
const FRAME_INTERVAL_MS = 100;

/** Verifies the whole store, step by step, with a progress display. */
export async function verifyStore(maintenance: Maintenance, terminal: Terminal): Promise<StoreVerification> {
  const begun = performance.now();
  const every = terminal.streams.stderr.isTTY === true ? FRAME_INTERVAL_MS : LOG_INTERVAL_MS;
  const damage: Damage[] = [];
  let [sessions, entries, skippedStructure, told] = [0, 0, false, begun];
  terminal.showProgress('Verifying the structure of the file …');
  for (let cursor: VerifyCursor | undefined, isFirst = true; cursor !== undefined || isFirst; isFirst = false) {
    const step = await maintenance.verify(cursor);
    cursor = step.cursor;
    sessions += step.sessions;
    entries += step.entries;
    skippedStructure ||= step.skippedStructure;
    damage.push(...step.damage);
    if (performance.now() - told < every) continue;
    told = performance.now();
    const found = damage.length === 0 ? '' : `, ${formatInteger(damage.length)} damaged`;
    const so = `${formatInteger(sessions)} of ${formatInteger(step.total)} sessions, ${formatInteger(entries)} entries${found}`;
    terminal.showProgress(`Verifying: ${so}, ${formatDuration(told - begun)}`);
  }
  terminal.showProgress(undefined);
  return { sessions, entries, damage, skippedStructure };
}

/** What is accepted under a name: all damage of a session, or `@KIND` for what belongs to no session. */
function damageNamed(name: string, damage: readonly Incident[]): readonly Incident[] {
  const own = damage.filter(({ session }) => session === name);
  return own.length > 0 ? own : damage.filter(({ session, kind }) => session === undefined && name === `@${kind}`);
}

/** The name to accept damage by. */
export function damageNameOf({ session, kind }: Damage): string {
  return session ?? `@${kind}`;
}

export interface Attribution {
  readonly by: string;
  readonly reason?: string;
}

/** Accepts the damage of each name; a name without any is a usage error, and then nothing is accepted. */
export async function acceptDamage(
  names: readonly string[],
  word: Attribution,
  maintenance: Maintenance,
  terminal: Terminal,
): Promise<readonly Incident[]> {
  const { damage } = await maintenance.readLog();
  const meant = names.map((name) => [name, damageNamed(name, damage)] as const);
  const unknown = meant.find(([, incidents]) => incidents.length === 0)?.[0];
  if (unknown !== undefined) {
    throw new UsageError(
      `There is no damage on record under "${sanitizeText(unknown)}" that nobody has accepted. See: rondo doctor`,
    );
  }
  const ids = new Set(meant.flatMap(([, incidents]) => incidents.map(({ id }) => id)));
  const accepted = await maintenance.accept([...ids], word);
  for (const incident of accepted)
    terminal.printToStderr(`Accepted: ${describeDamage(incident)}${consequenceOf(incident)}`);
  return accepted;
}

function consequenceOf({ session, closed }: Incident): string {
  if (session === undefined) return '';
  if (closed?.as === 'continued') return ` The session can be used again.`;
  return ` The session stays refused: what is left cannot be read. Remove it with: rondo remove ${sanitizeText(session)}`;
}

/** One damage in a sentence or two. */
export function describeDamage(damage: Damage): string {
  const { session, kind, note } = damage;
  const what = session === undefined ? note : `session "${session}": ${kind}: ${note}`;
  return sanitizeText(`${what}.`);
}

/** What to do about it. */
export function damageAdvice(damage: Damage): string {
  const name = sanitizeText(damageNameOf(damage));
  if (damage.kind === 'file') return 'Restore the file from a backup; until then it can only be read.';
  const accept = `rondo doctor --accept ${name}`;
  if (damage.session === undefined) return `Restore a backup, or accept it: ${accept}`;
  return `Restore a backup, accept the loss: ${accept}, or remove the session: rondo remove ${name}`;
}

/** The sessions that damage is about, each once. */
export function affectedSessions(damage: readonly Damage[]): readonly string[] {
  return [...new Set(damage.flatMap(({ session }) => session ?? []))];
}

/** What was accepted, for the record. */
export function acceptedDamageLines({ closed }: MaintenanceLog): readonly string[] {
  return closed.flatMap((incident) => {
    const word = incident.closed;
    if (word === undefined) return [];
    const why = word.reason === undefined ? '' : ` (${word.reason})`;
    const how = word.as === 'removed' ? 'removed with its session' : 'accepted';
    const by = word.by === '' ? '' : ` by ${word.by}`;
    return [sanitizeText(`${how}${by} at ${new Date(word.at).toISOString()}${why}: ${describeDamage(incident)}`)];
  });
}
