/** `doctor`: looks at everything that a run needs, and says what to do about what is wrong. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../../../base/errors.js';
import { permitsOf, sendRefusal } from '../../../base/permits.js';
import {
  type ComposedHost,
  composeHost,
  type Damage,
  emptyDefinitions,
  type Incident,
  loadLoops,
  loadSettings,
  type ProjectSettings,
  sandboxUnavailableReason,
} from '../../compose.js';
import { UsageError } from '../../settings.js';
import { describeBadFile } from '../definitions.js';
import {
  acceptDamage,
  acceptedDamageLines,
  affectedSessions,
  damageAdvice,
  damageNameOf,
  describeDamage,
  type StoreVerification,
  verifyStore,
} from '../store-check.js';
import { createColors, formatInteger, sanitizeText } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, type Invocation, listOption, textOption, type VerbHandler } from '../verb.js';

type FindingStatus = 'ok' | 'warn' | 'fail';

interface Finding {
  readonly name: string;
  readonly status: FindingStatus;
  readonly message: string;
  /** What to do about it. */
  readonly advice?: string;
}

const MIN_NODE_VERSION = { major: 20, minor: 19 };

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

export const doctor: VerbHandler = async (invocation) => {
  const { settingsInput, terminal, json } = invocation;
  const findings: Finding[] = [nodeFinding(process.versions.node)];
  let store: StoreFindings = { findings: [], isDamaged: false };
  try {
    const settings = await loadSettings(settingsInput);
    findings.push(configFinding(settings), ...(await dataDirectoryFindings(settings)));
    store = await storeFindings(settings, invocation);
    findings.push(...store.findings);
    for (const look of [loopFindings, sandboxFindings, backendFindings]) findings.push(...(await look(settings)));
  } catch (thrown) {
    if (thrown instanceof UsageError && listOption(invocation.options.accept).length > 0) throw thrown;
    const usage = thrown instanceof UsageError;
    findings.push(
      createFinding('config', 'fail', thrownMessage(thrown), usage ? 'Change the setting.' : 'Mend the file.'),
    );
  }
  const ok = findings.every(({ status }) => status !== 'fail');
  if (json) await terminal.printJson({ ok, checks: findings, ...(store.facts && { store: store.facts }) });
  else {
    const colors = createColors(terminal.displayOf().color);
    const mark = { ok: colors.green('ok  '), warn: colors.yellow('warn'), fail: colors.red('fail') };
    const lines = findings.flatMap(({ name, status, message, advice }) => [
      `${mark[status]}  ${name.padEnd(9)} ${sanitizeText(message)}`,
      ...(advice === undefined ? [] : [`${' '.repeat(16)}${sanitizeText(advice)}`]),
    ]);
    await terminal.print(`${lines.join('\n')}\n`);
  }
  if (store.isDamaged) return exitCodes.unverified;
  return ok ? exitCodes.ok : exitCodes.failed;
};

function createFinding(name: string, status: FindingStatus, message: string, advice?: string): Finding {
  return { name, status, message, ...(advice !== undefined && { advice }) };
}

const thrownMessage = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** Whether this Node is new enough. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fits = major > MIN_NODE_VERSION.major || (major === MIN_NODE_VERSION.major && minor >= MIN_NODE_VERSION.minor);
  if (fits) return createFinding('node', 'ok', `Node ${version}`);
  return createFinding(
    'node',
    'fail',
    `Node ${version} is too old.`,
    `Install Node ${MIN_NODE_VERSION.major}.${MIN_NODE_VERSION.minor} or newer.`,
  );
}

function configFinding({ config }: ProjectSettings): Finding {
  return createFinding('config', 'ok', config.file ?? 'no rondo.toml; the defaults hold');
}

async function dataDirectoryFindings({ dataDirectory }: ProjectSettings): Promise<Finding[]> {
  for (let place = dataDirectory; ; place = dirname(place)) {
    const found = await stat(place).catch(() => undefined);
    if (found === undefined && dirname(place) !== place) continue;
    const usable =
      found?.isDirectory() &&
      (await access(place, constants.W_OK | constants.X_OK).then(
        () => true,
        () => false,
      ));
    if (!usable)
      return [createFinding('data', 'fail', `${place} cannot be written to.`, 'Choose another with --data.')];
    return [
      createFinding(
        'data',
        'ok',
        place === dataDirectory ? dataDirectory : `${dataDirectory} will be made by the first run`,
      ),
    ];
  }
}

/** Opens the store as any verb would: its owner, if there is one, is asked first. */
async function storeFindings(settings: ProjectSettings, invocation: Invocation): Promise<StoreFindings> {
  const { store } = settings;
  const one = (found: Finding, isDamaged = false): StoreFindings => ({ findings: [found], isDamaged });
  if (store.kind === 'memory') return one(createFinding('store', 'warn', 'memory: nothing outlives the process.'));
  try {
    const composed = await composeHost(settings, { createIfMissing: false, definitions: await emptyDefinitions() });
    try {
      return await inspectStore(composed, store.path, invocation);
    } finally {
      await composed.close();
    }
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const code = thrown instanceof Fault ? thrown.code : undefined;
    const waits = 'Verbs cannot use the store until that process answers.';
    if (code === 'STORE_OWNED') return one(createFinding('store', 'warn', thrownMessage(thrown), waits));
    const advice = 'Mend or restore the file, or choose another with --store.';
    return one(createFinding('store', 'fail', thrownMessage(thrown), advice), code === 'STORE_DAMAGED');
  }
}

/** What opening the store has found, what is on its record, and with --full what a full check finds. */
async function inspectStore(composed: ComposedHost, path: string, invocation: Invocation): Promise<StoreFindings> {
  const { terminal, options } = invocation;
  const { maintenance } = composed;
  if (maintenance === undefined) {
    return { findings: [createFinding('store', 'ok', `${path} will be made by the first run`)], isDamaged: false };
  }
  const { report, owner } = composed.store as StoreInspection;
  const shared = owner === undefined || owner.here ? '' : `: process ${owner.pid} owns it, and answers`;
  const verified = options.full === true ? await verifyStore(maintenance, terminal) : undefined;
  const names = listOption(options.accept);
  const reason = textOption(options.reason);
  const word = { by: userNameOf(options), ...(reason !== undefined && { reason }) };
  if (names.length > 0) await acceptDamage(names, word, maintenance, terminal);
  const record = await maintenance.readLog();
  // A broken structure cannot be recorded in the file that is broken.
  const unrecorded = [...(report?.damage ?? []), ...(verified?.damage ?? [])].filter(({ kind }) => kind === 'file');
  const damage = [...unrecorded.slice(0, 1), ...record.damage];
  const facts: StoreFacts = {
    checked: verified === undefined ? (report?.checked ?? 'heads') : 'full',
    ...(verified && { sessions: verified.sessions, entries: verified.entries }),
    damage,
    affected: affectedSessions(damage),
    accepted: record.closed,
    removed: record.removals,
  };
  const findings = [
    ...damage.map((item) => createFinding('store', 'fail', describeDamage(item), damageAdvice(item))),
    ...(damage.length === 0
      ? [createFinding('store', 'ok', `${path}${shared}${verificationNote(verified)}`)]
      : affectedFinding(facts)),
    ...structureFindings(verified, owner?.pid),
    ...acceptedDamageLines(record).map((line) => createFinding('store', 'ok', line)),
  ];
  return { findings, facts, isDamaged: damage.length > 0 };
}

function verificationNote(verified: StoreVerification | undefined): string {
  if (verified === undefined) return '';
  const { sessions, entries } = verified;
  return `: all of it was verified (${sessions === 1 ? 'one session' : `${formatInteger(sessions)} sessions`}, ${formatInteger(entries)} entries)`;
}

function affectedFinding({ affected: sessions, damage }: StoreFacts): readonly Finding[] {
  const names = [...new Set(damage.map(damageNameOf))].map((name) => sanitizeText(name));
  const which = `${formatInteger(sessions.length)} ${sessions.length === 1 ? 'session is' : 'sessions are'} affected`;
  return [createFinding('store', 'fail', `${which}; on record until each is accepted by name: ${names.join(', ')}`)];
}

function structureFindings(verified: StoreVerification | undefined, pid: number | undefined): readonly Finding[] {
  if (verified?.skippedStructure !== true) return [];
  const message = `The pages of the file were not checked by SQLite: process ${pid} serves it, and would stand still meanwhile.`;
  return [createFinding('store', 'warn', message, 'End that process, then run rondo doctor --full again.')];
}

/** What is said of a store beside its port. */
interface StoreInspection {
  readonly report?: { readonly checked: 'heads' | 'full'; readonly damage: readonly Damage[] };
  readonly owner?: { readonly pid: number; readonly here: boolean };
}

async function loopFindings(settings: ProjectSettings): Promise<Finding[]> {
  const { registry, badFiles } = await loadLoops(settings);
  const count = registry.list().length;
  const flaws = badFiles.map((item) => createFinding('loops', 'fail', describeBadFile(item), 'See: rondo check'));
  if (count > 0) return [createFinding('loops', 'ok', `${count} in ${settings.loopsDirectory}`), ...flaws];
  const advice = 'Put definitions there, or choose another directory with --loops.';
  return flaws.length > 0
    ? flaws
    : [createFinding('loops', 'warn', `There are none in ${settings.loopsDirectory}.`, advice)];
}

/** Whether `run_command` of the toolbox can confine a command. */
async function sandboxFindings(): Promise<Finding[]> {
  const flaw = await sandboxUnavailableReason();
  if (flaw === undefined) return [createFinding('sandbox', 'ok', 'commands run confined and within limits')];
  const advice = 'Without it toolbox commands are refused, unless commands.sandbox is "preferred" or "off".';
  return [createFinding('sandbox', 'warn', `Commands cannot be sandboxed: ${flaw}.`, advice)];
}

const HOSTED_BACKENDS = [
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
  const found = [...HOSTED_BACKENDS, ...own].map(({ id, variable, packageName, url }) => {
    const refused = url && variable && !permits.canSend(variable, url);
    if (refused) return createFinding('backend', 'warn', `${id} cannot be asked: it ${sendRefusal(variable, url)}.`);
    const wants = [
      ...(variable === undefined || env[variable] ? [] : [`set ${variable}`]),
      ...(isInstalled(packageName) ? [] : [`npm install ${packageName}`]),
    ];
    if (wants.length === 0)
      return createFinding('backend', 'ok', `${id}: ${variable ? `${variable} is set` : 'needs no key'}`);
    return createFinding('backend', 'warn', `${id} cannot be asked.`, `To use it: ${wants.join(', and ')}`);
  });
  return [createFinding('backend', 'ok', 'mock and scripted need nothing'), ...found];
}

function isInstalled(name: string): boolean {
  try {
    return import.meta.resolve(name) !== '';
  } catch {
    return false;
  }
}
