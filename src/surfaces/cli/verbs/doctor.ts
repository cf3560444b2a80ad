/** `rondo doctor`: checks everything that a turn needs, and explains how to fix problems. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../../../base/errors.js';
import { permitsOf, sendRefusal, trustAdvice } from '../../../base/permits.js';
import {
  type ComposedHost,
  composeHost,
  type Damage,
  emptyDefinitions,
  type Incident,
  loadLoops,
  loadSettings,
  openReceiptKeys,
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
  /** How to fix the problem. */
  readonly advice?: string;
}

const MIN_NODE_VERSION = { major: 20, minor: 19 };

/** The facts about the store in the JSON document. */
interface StoreFacts {
  /** What was verified. `heads`: the end of every session. `full`: all entries and blobs as well. */
  readonly checked: 'heads' | 'full';
  readonly sessions?: number;
  readonly entries?: number;
  /** Damage that has not been accepted. */
  readonly damage: readonly Damage[];
  /** The sessions with such damage. */
  readonly affected: readonly string[];
  readonly accepted: readonly Incident[];
  readonly removed: readonly unknown[];
}

interface StoreFindings {
  readonly findings: readonly Finding[];
  readonly facts?: StoreFacts;
  /** True if stored data differs, or may differ, from what was written. */
  readonly isDamaged: boolean;
}

/** Handles `rondo doctor`. */
export const doctor: VerbHandler = async (invocation) => {
  const { settingsInput, terminal, json } = invocation;
  const findings: Finding[] = [nodeFinding(process.versions.node)];
  let store: StoreFindings = { findings: [], isDamaged: false };
  try {
    const settings = await loadSettings(settingsInput);
    findings.push(configFinding(settings), ...envFileFindings(settings), ...(await dataDirectoryFindings(settings)));
    store = await storeFindings(settings, invocation);
    findings.push(...store.findings, ...(await keyFindings(settings)));
    for (const check of [loopFindings, sandboxFindings, backendFindings]) findings.push(...(await check(settings)));
  } catch (thrown) {
    if (thrown instanceof UsageError && listOption(invocation.options.accept).length > 0) throw thrown;
    const advice = thrown instanceof UsageError ? 'Change the setting.' : 'Fix the file.';
    findings.push(createFinding('config', 'fail', thrownMessage(thrown), advice));
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

/** Checks that this Node version is supported. */
function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isSupported =
    major > MIN_NODE_VERSION.major || (major === MIN_NODE_VERSION.major && minor >= MIN_NODE_VERSION.minor);
  if (isSupported) return createFinding('node', 'ok', `Node ${version}`);
  return createFinding(
    'node',
    'fail',
    `Node ${version} is too old.`,
    `Install Node ${MIN_NODE_VERSION.major}.${MIN_NODE_VERSION.minor} or newer.`,
  );
}

function configFinding({ config }: ProjectSettings): Finding {
  return createFinding('config', 'ok', config.file ?? 'no rondo.toml; the defaults apply');
}

/** Reports which variables of `.env` are used. */
function envFileFindings({ envFile }: ProjectSettings): Finding[] {
  if (envFile === undefined) return [];
  const { file, isTrusted, names, ignored, problem } = envFile;
  if (problem !== undefined) return [createFinding('.env', 'warn', `${file}: ${problem}.`)];
  if (!isTrusted) return [createFinding('.env', 'warn', `${file} is not read.`, trustAdvice(dirname(file)))];
  const advice = ignored.length === 0 ? undefined : `Only keys are read from it; not read: ${ignored.join(', ')}.`;
  return [createFinding('.env', 'ok', `${file} sets ${names.join(', ') || 'nothing new'}`, advice)];
}

/** Checks that the data directory, or its nearest existing parent, is writable. */
async function dataDirectoryFindings({ dataDirectory }: ProjectSettings): Promise<Finding[]> {
  for (let directory = dataDirectory; ; directory = dirname(directory)) {
    const stats = await stat(directory).catch(() => undefined);
    if (stats === undefined && dirname(directory) !== directory) continue;
    const isWritable =
      stats?.isDirectory() &&
      (await access(directory, constants.W_OK | constants.X_OK).then(
        () => true,
        () => false,
      ));
    if (!isWritable)
      return [createFinding('data', 'fail', `${directory} is not writable.`, 'Choose another directory with --data.')];
    const message = directory === dataDirectory ? dataDirectory : `${dataDirectory} will be created by the first run`;
    return [createFinding('data', 'ok', message)];
  }
}

/** Reports keys of receipts that were not created in the data directory. */
async function keyFindings(settings: ProjectSettings): Promise<Finding[]> {
  const problem = await openReceiptKeys(settings)
    .then((keys) => keys.foreignKeysNotice())
    .catch(thrownMessage);
  return problem === undefined ? [] : [createFinding('keys', 'warn', problem)];
}

/** Inspects the store. It is opened as by any other verb: through its owner if another process owns it. */
async function storeFindings(settings: ProjectSettings, invocation: Invocation): Promise<StoreFindings> {
  const { store } = settings;
  const single = (finding: Finding, isDamaged = false): StoreFindings => ({ findings: [finding], isDamaged });
  if (store.kind === 'memory')
    return single(createFinding('store', 'warn', 'memory: nothing is kept when the process ends.'));
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
    const ownedAdvice = 'Verbs cannot use the store until that process answers.';
    if (code === 'STORE_OWNED') return single(createFinding('store', 'warn', thrownMessage(thrown), ownedAdvice));
    const advice = 'Repair or restore the file, or choose another with --store.';
    return single(createFinding('store', 'fail', thrownMessage(thrown), advice), code === 'STORE_DAMAGED');
  }
}

/**
 * Verifies the store with --full, accepts damage with --accept, and returns findings for the damage that the log
 * records and for a damaged file structure.
 */
async function inspectStore(composed: ComposedHost, path: string, invocation: Invocation): Promise<StoreFindings> {
  const { terminal, options } = invocation;
  const { maintenance } = composed;
  if (maintenance === undefined) {
    return { findings: [createFinding('store', 'ok', `${path} will be created by the first run`)], isDamaged: false };
  }
  const { report, owner } = composed.store as StoreInspection;
  const ownerNote = owner === undefined || owner.here ? '' : `: process ${owner.pid} owns it and responds`;
  const verification = options.full === true ? await verifyStore(maintenance, terminal) : undefined;
  const names = listOption(options.accept);
  const reason = textOption(options.reason);
  const attribution = { by: userNameOf(options), ...(reason !== undefined && { reason }) };
  if (names.length > 0) await acceptDamage(names, attribution, maintenance, terminal);
  const log = await maintenance.readLog();
  // A file with a damaged structure cannot record its own damage.
  const unrecorded = [...(report?.damage ?? []), ...(verification?.damage ?? [])].filter(({ kind }) => kind === 'file');
  const damage = [...unrecorded.slice(0, 1), ...log.damage];
  const facts: StoreFacts = {
    checked: verification === undefined ? (report?.checked ?? 'heads') : 'full',
    ...(verification && { sessions: verification.sessions, entries: verification.entries }),
    damage,
    affected: affectedSessions(damage),
    accepted: log.closed,
    removed: log.removals,
  };
  const findings = [
    ...damage.map((item) => createFinding('store', 'fail', describeDamage(item), damageAdvice(item))),
    ...(damage.length === 0
      ? [createFinding('store', 'ok', `${path}${ownerNote}${verificationNote(verification)}`)]
      : affectedFinding(facts)),
    ...structureFindings(verification, owner?.pid),
    ...acceptedDamageLines(log).map((line) => createFinding('store', 'ok', line)),
  ];
  return { findings, facts, isDamaged: damage.length > 0 };
}

function verificationNote(verification: StoreVerification | undefined): string {
  if (verification === undefined) return '';
  const { sessions, entries } = verification;
  return `: verified completely (${sessions === 1 ? 'one session' : `${formatInteger(sessions)} sessions`}, ${formatInteger(entries)} entries)`;
}

function affectedFinding({ affected: sessions, damage }: StoreFacts): readonly Finding[] {
  const names = [...new Set(damage.map(damageNameOf))].map((name) => sanitizeText(name));
  const count = `${formatInteger(sessions.length)} ${sessions.length === 1 ? 'session is' : 'sessions are'} affected`;
  return [createFinding('store', 'fail', `${count}; recorded until each is accepted by name: ${names.join(', ')}`)];
}

function structureFindings(verification: StoreVerification | undefined, pid: number | undefined): readonly Finding[] {
  if (verification?.skippedStructure !== true) return [];
  const message = `SQLite's check of the file structure was skipped, because it would block process ${pid}, which serves the file.`;
  return [createFinding('store', 'warn', message, 'End that process, then run rondo doctor --full again.')];
}

/** Members of a SQLite store beyond the `Store` interface. */
interface StoreInspection {
  readonly report?: { readonly checked: 'heads' | 'full'; readonly damage: readonly Damage[] };
  readonly owner?: { readonly pid: number; readonly here: boolean };
}

async function loopFindings(settings: ProjectSettings): Promise<Finding[]> {
  const { registry, badFiles } = await loadLoops(settings);
  const count = registry.list().length;
  const failures = badFiles.map((item) => createFinding('loops', 'fail', describeBadFile(item), 'See: rondo check'));
  if (count > 0) return [createFinding('loops', 'ok', `${count} in ${settings.loopsDirectory}`), ...failures];
  const advice = 'Put definitions there, or choose another directory with --loops.';
  return failures.length > 0
    ? failures
    : [createFinding('loops', 'warn', `There are no loops in ${settings.loopsDirectory}.`, advice)];
}

/** Checks that `run_command` of the toolbox can sandbox commands. */
async function sandboxFindings(): Promise<Finding[]> {
  const reason = await sandboxUnavailableReason();
  if (reason === undefined) return [createFinding('sandbox', 'ok', 'commands run in a sandbox with limits')];
  const advice = 'Without it toolbox commands are refused, unless commands.sandbox is "preferred" or "off".';
  return [createFinding('sandbox', 'warn', `Commands cannot be sandboxed: ${reason}.`, advice)];
}

const HOSTED_BACKENDS = [
  { id: 'openai', variable: 'OPENAI_API_KEY', packageName: '@ai-sdk/openai', url: undefined },
  { id: 'anthropic', variable: 'ANTHROPIC_API_KEY', packageName: '@ai-sdk/anthropic', url: undefined },
] as const;

/** Checks which backends can be used. API keys are never printed, only that they are set. */
async function backendFindings({ env, config, authority }: ProjectSettings): Promise<Finding[]> {
  const permits = permitsOf(env, authority);
  const configured = [...config.backends].map(([id, { apiKeyEnv, baseURL }]) => ({
    id,
    variable: apiKeyEnv,
    packageName: '@ai-sdk/openai-compatible',
    url: new URL(baseURL),
  }));
  const findings = [...HOSTED_BACKENDS, ...configured].map(({ id, variable, packageName, url }) => {
    const isRefused = url && variable && !permits.canSend(variable, url);
    if (isRefused) return createFinding('backend', 'warn', `${id} cannot be used: it ${sendRefusal(variable, url)}.`);
    const steps = [
      ...(variable === undefined || env[variable] ? [] : [`set ${variable}`]),
      ...(isInstalled(packageName) ? [] : [`npm install ${packageName}`]),
    ];
    if (steps.length === 0)
      return createFinding('backend', 'ok', `${id}: ${variable ? `${variable} is set` : 'needs no key'}`);
    return createFinding('backend', 'warn', `${id} cannot be used.`, `To use it: ${steps.join(', and ')}`);
  });
  return [createFinding('backend', 'ok', 'mock and scripted need no set-up'), ...findings];
}

function isInstalled(name: string): boolean {
  try {
    return import.meta.resolve(name) !== '';
  } catch {
    return false;
  }
}
