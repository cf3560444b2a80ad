/** `doctor`: looks at everything that a run needs, and says what to do about what is wrong. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../../../base/errors.js';
import { permitsOf, sendRefusal } from '../../../base/permits.js';
import {
  type Composed,
  compose,
  type Damage,
  type Incident,
  loadLoops,
  noDefinitions,
  type ProjectSettings,
  sandboxFlaw,
  settingsOf,
} from '../../compose.js';
import { UsageError } from '../../settings.js';
import { describeBad } from '../definitions.js';
import { exact, paint, plain } from '../paint.js';
import {
  acceptDamage,
  acceptedOf,
  adviceOn,
  affected,
  describe,
  nameOf,
  type Verified,
  verifyStore,
} from '../store-check.js';
import { type Act, exit, type Invocation, listOf, textOf } from '../verb.js';
import { whoOf } from '../who.js';

type Mark = 'ok' | 'warn' | 'fail';

interface Finding {
  readonly name: string;
  readonly status: Mark;
  readonly message: string;
  /** What to do about it. */
  readonly advice?: string;
}

const NODE = { major: 20, minor: 19 };

/** What is told of the store beside the findings. */
interface StoreFacts {
  readonly checked: 'heads' | 'full';
  readonly sessions?: number;
  readonly entries?: number;
  /** Damage that nobody has accepted, and the sessions that it is about. */
  readonly damage: readonly Damage[];
  readonly affected: readonly string[];
  readonly accepted: readonly Incident[];
  readonly removed: readonly unknown[];
}

interface StoreFindings {
  readonly findings: readonly Finding[];
  readonly facts?: StoreFacts;
  /** True if stored data is not what was written, or may not be. */
  readonly isDamaged: boolean;
}

export const doctor: Act = async (invocation) => {
  const { asked, terminal, json } = invocation;
  const findings: Finding[] = [nodeFinding(process.versions.node)];
  let store: StoreFindings = { findings: [], isDamaged: false };
  try {
    const settings = await settingsOf(asked);
    findings.push(configFinding(settings), ...(await dataFindings(settings)));
    store = await storeFindings(settings, invocation);
    findings.push(...store.findings);
    for (const look of [loopFindings, sandboxFindings, backendFindings]) findings.push(...(await look(settings)));
  } catch (thrown) {
    if (thrown instanceof UsageError && listOf(invocation.options.accept).length > 0) throw thrown;
    const usage = thrown instanceof UsageError;
    findings.push(finding('config', 'fail', messageOf(thrown), usage ? 'Change the setting.' : 'Mend the file.'));
  }
  const ok = findings.every(({ status }) => status !== 'fail');
  if (json) await terminal.json({ ok, checks: findings, ...(store.facts && { store: store.facts }) });
  else {
    const colors = paint(terminal.look().color);
    const mark = { ok: colors.green('ok  '), warn: colors.yellow('warn'), fail: colors.red('fail') };
    const lines = findings.flatMap(({ name, status, message, advice }) => [
      `${mark[status]}  ${name.padEnd(9)} ${plain(message)}`,
      ...(advice === undefined ? [] : [`${' '.repeat(16)}${plain(advice)}`]),
    ]);
    await terminal.print(`${lines.join('\n')}\n`);
  }
  if (store.isDamaged) return exit.unverified;
  return ok ? exit.ok : exit.failed;
};

function finding(name: string, status: Mark, message: string, advice?: string): Finding {
  return { name, status, message, ...(advice !== undefined && { advice }) };
}

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** Whether this Node is new enough. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fits = major > NODE.major || (major === NODE.major && minor >= NODE.minor);
  if (fits) return finding('node', 'ok', `Node ${version}`);
  return finding('node', 'fail', `Node ${version} is too old.`, `Install Node ${NODE.major}.${NODE.minor} or newer.`);
}

function configFinding({ config }: ProjectSettings): Finding {
  return finding('config', 'ok', config.file ?? 'no rondo.toml; the defaults hold');
}

async function dataFindings({ data }: ProjectSettings): Promise<Finding[]> {
  for (let place = data; ; place = dirname(place)) {
    const found = await stat(place).catch(() => undefined);
    if (found === undefined && dirname(place) !== place) continue;
    const usable =
      found?.isDirectory() &&
      (await access(place, constants.W_OK | constants.X_OK).then(
        () => true,
        () => false,
      ));
    if (!usable) return [finding('data', 'fail', `${place} cannot be written to.`, 'Choose another with --data.')];
    return [finding('data', 'ok', place === data ? data : `${data} will be made by the first run`)];
  }
}

/** Opens the store as any verb would: its owner, if there is one, is asked first. */
async function storeFindings(settings: ProjectSettings, invocation: Invocation): Promise<StoreFindings> {
  const { store } = settings;
  const one = (found: Finding, isDamaged = false): StoreFindings => ({ findings: [found], isDamaged });
  if (store.kind === 'memory') return one(finding('store', 'warn', 'memory: nothing outlives the process.'));
  try {
    const composed = await compose(settings, { make: false, definitions: await noDefinitions() });
    try {
      return await reportOf(composed, store.path, invocation);
    } finally {
      await composed.close();
    }
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const code = thrown instanceof Fault ? thrown.code : undefined;
    const waits = 'Verbs cannot use the store until that process answers.';
    if (code === 'STORE_OWNED') return one(finding('store', 'warn', messageOf(thrown), waits));
    const advice = 'Mend or restore the file, or choose another with --store.';
    return one(finding('store', 'fail', messageOf(thrown), advice), code === 'STORE_DAMAGED');
  }
}

/** What opening the store has found, what is on its record, and with --full what a full check finds. */
async function reportOf(composed: Composed, path: string, invocation: Invocation): Promise<StoreFindings> {
  const { terminal, options } = invocation;
  const { maintenance } = composed;
  if (maintenance === undefined) {
    return { findings: [finding('store', 'ok', `${path} will be made by the first run`)], isDamaged: false };
  }
  const { report, owner } = composed.store as Examined;
  const shared = owner === undefined || owner.here ? '' : `: process ${owner.pid} owns it, and answers`;
  const verified = options.full === true ? await verifyStore(maintenance, terminal) : undefined;
  const names = listOf(options.accept);
  const reason = textOf(options.reason);
  const word = { by: whoOf(options), ...(reason !== undefined && { reason }) };
  if (names.length > 0) await acceptDamage(names, word, maintenance, terminal);
  const record = await maintenance.record();
  // A broken structure cannot be recorded in the file that is broken.
  const unrecorded = [...(report?.damage ?? []), ...(verified?.damage ?? [])].filter(({ kind }) => kind === 'file');
  const damage = [...unrecorded.slice(0, 1), ...record.damage];
  const facts: StoreFacts = {
    checked: verified === undefined ? (report?.checked ?? 'heads') : 'full',
    ...(verified && { sessions: verified.sessions, entries: verified.entries }),
    damage,
    affected: affected(damage),
    accepted: record.closed,
    removed: record.removals,
  };
  const findings = [
    ...damage.map((item) => finding('store', 'fail', describe(item), adviceOn(item))),
    ...(damage.length === 0
      ? [finding('store', 'ok', `${path}${shared}${checkedOf(verified)}`)]
      : affectedFinding(facts)),
    ...structureFindings(verified, owner?.pid),
    ...acceptedOf(record).map((line) => finding('store', 'ok', line)),
  ];
  return { findings, facts, isDamaged: damage.length > 0 };
}

function checkedOf(verified: Verified | undefined): string {
  if (verified === undefined) return '';
  const { sessions, entries } = verified;
  return `: all of it was verified (${sessions === 1 ? 'one session' : `${exact(sessions)} sessions`}, ${exact(entries)} entries)`;
}

function affectedFinding({ affected: sessions, damage }: StoreFacts): readonly Finding[] {
  const names = [...new Set(damage.map(nameOf))].map((name) => plain(name));
  const which = `${exact(sessions.length)} ${sessions.length === 1 ? 'session is' : 'sessions are'} affected`;
  return [finding('store', 'fail', `${which}; on record until each is accepted by name: ${names.join(', ')}`)];
}

function structureFindings(verified: Verified | undefined, pid: number | undefined): readonly Finding[] {
  if (verified?.skippedStructure !== true) return [];
  const message = `The pages of the file were not checked by SQLite: process ${pid} serves it, and would stand still meanwhile.`;
  return [finding('store', 'warn', message, 'End that process, then run rondo doctor --full again.')];
}

/** What is said of a store beside its port. */
interface Examined {
  readonly report?: { readonly checked: 'heads' | 'full'; readonly damage: readonly Damage[] };
  readonly owner?: { readonly pid: number; readonly here: boolean };
}

async function loopFindings(settings: ProjectSettings): Promise<Finding[]> {
  const { registry, bad } = await loadLoops(settings);
  const count = registry.list().length;
  const flaws = bad.map((item) => finding('loops', 'fail', describeBad(item), 'See: rondo check'));
  if (count > 0) return [finding('loops', 'ok', `${count} in ${settings.loops}`), ...flaws];
  const advice = 'Put definitions there, or choose another directory with --loops.';
  return flaws.length > 0 ? flaws : [finding('loops', 'warn', `There are none in ${settings.loops}.`, advice)];
}

/** Whether `run_command` of the toolbox can confine a command. */
async function sandboxFindings(): Promise<Finding[]> {
  const flaw = await sandboxFlaw();
  if (flaw === undefined) return [finding('sandbox', 'ok', 'commands run confined and within limits')];
  const advice = 'Without it toolbox commands are refused, unless commands.sandbox is "preferred" or "off".';
  return [finding('sandbox', 'warn', `Commands cannot be sandboxed: ${flaw}.`, advice)];
}

const services = [
  { id: 'openai', variable: 'OPENAI_API_KEY', packageName: '@ai-sdk/openai', url: undefined },
  { id: 'anthropic', variable: 'ANTHROPIC_API_KEY', packageName: '@ai-sdk/anthropic', url: undefined },
] as const;

/** Which models could be asked. Of a key only whether it is set is told, never a letter of it. */
async function backendFindings({ env, config, authority }: ProjectSettings): Promise<Finding[]> {
  const permits = permitsOf(env, authority);
  const own = [...config.backends].map(([id, { apiKeyEnv, baseURL }]) => ({
    id,
    variable: apiKeyEnv,
    packageName: '@ai-sdk/openai-compatible',
    url: new URL(baseURL),
  }));
  const found = [...services, ...own].map(({ id, variable, packageName, url }) => {
    const refused = url && variable && !permits.maySend(variable, url);
    if (refused) return finding('backend', 'warn', `${id} cannot be asked: it ${sendRefusal(variable, url)}.`);
    const wants = [
      ...(variable === undefined || env[variable] ? [] : [`set ${variable}`]),
      ...(isInstalled(packageName) ? [] : [`npm install ${packageName}`]),
    ];
    if (wants.length === 0)
      return finding('backend', 'ok', `${id}: ${variable ? `${variable} is set` : 'needs no key'}`);
    return finding('backend', 'warn', `${id} cannot be asked.`, `To use it: ${wants.join(', and ')}`);
  });
  return [finding('backend', 'ok', 'mock and scripted need nothing'), ...found];
}

function isInstalled(name: string): boolean {
  try {
    return import.meta.resolve(name) !== '';
  } catch {
    return false;
  }
}
