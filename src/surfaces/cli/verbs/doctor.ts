/** `doctor`: looks at everything that a run needs, and says what to do about what is wrong. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../../../journal/errors.js';
import {
  type Composed,
  compose,
  loadLoops,
  noDefinitions,
  type ProjectSettings,
  sandboxFlaw,
  settingsOf,
} from '../../compose.js';
import { UsageError } from '../../settings.js';
import { describeBad } from '../definitions.js';
import { paint, plain } from '../paint.js';
import { type Act, exit } from '../verb.js';

type Mark = 'ok' | 'warn' | 'fail';

interface Finding {
  readonly name: string;
  readonly status: Mark;
  readonly message: string;
  /** What to do about it. */
  readonly advice?: string;
}

const NODE = { major: 20, minor: 19 };

export const doctor: Act = async ({ asked, terminal, json }) => {
  const findings: Finding[] = [nodeFinding(process.versions.node)];
  try {
    const settings = await settingsOf(asked);
    findings.push(configFinding(settings));
    for (const look of [dataFindings, storeFindings, loopFindings, sandboxFindings, backendFindings]) {
      findings.push(...(await look(settings)));
    }
  } catch (thrown) {
    const usage = thrown instanceof UsageError;
    findings.push(finding('config', 'fail', messageOf(thrown), usage ? 'Change the setting.' : 'Mend the file.'));
  }
  const ok = findings.every(({ status }) => status !== 'fail');
  if (json) await terminal.json({ ok, checks: findings });
  else {
    const colors = paint(terminal.look().color);
    const mark = { ok: colors.green('ok  '), warn: colors.yellow('warn'), fail: colors.red('fail') };
    const lines = findings.flatMap(({ name, status, message, advice }) => [
      `${mark[status]}  ${name.padEnd(9)} ${plain(message)}`,
      ...(advice === undefined ? [] : [`${' '.repeat(16)}${plain(advice)}`]),
    ]);
    await terminal.print(`${lines.join('\n')}\n`);
  }
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
async function storeFindings(settings: ProjectSettings): Promise<Finding[]> {
  const { store } = settings;
  if (store.kind === 'memory') return [finding('store', 'warn', 'memory: nothing outlives the process.')];
  try {
    const composed = await compose(settings, { make: false, definitions: await noDefinitions() });
    const found = reportOf(composed, store.path);
    await composed.close();
    return found;
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const owned = thrown instanceof Fault && thrown.code === 'STORE_OWNED';
    if (owned)
      return [finding('store', 'warn', thrown.message, 'Verbs cannot use the store until that process answers.')];
    return [finding('store', 'fail', messageOf(thrown), 'Mend or restore the file, or choose another with --store.')];
  }
}

/** What is said of a store beside its port. */
interface Examined {
  readonly report?: { readonly damage: readonly { readonly note: string }[] };
  readonly owner?: { readonly pid: number; readonly here: boolean };
}

/** What opening the store has found. */
function reportOf({ store }: Composed, path: string): Finding[] {
  const { report, owner } = store as Examined;
  if (report === undefined) return [finding('store', 'ok', `${path} will be made by the first run`)];
  const shared = owner === undefined || owner.here ? '' : `: process ${owner.pid} owns it, and answers`;
  if (report.damage.length === 0) return [finding('store', 'ok', `${path}${shared}`)];
  const advice = 'Restore the file from a backup; what is damaged is refused, the rest goes on.';
  return report.damage.map(({ note }) => finding('store', 'fail', note, advice));
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
  { id: 'openai', variable: 'OPENAI_API_KEY', packageName: '@ai-sdk/openai' },
  { id: 'anthropic', variable: 'ANTHROPIC_API_KEY', packageName: '@ai-sdk/anthropic' },
] as const;

/** Which models could be asked. Of a key only whether it is set is told, never a letter of it. */
async function backendFindings({ env, config }: ProjectSettings): Promise<Finding[]> {
  const own = [...config.backends].map(([id, { apiKeyEnv }]) => ({
    id,
    variable: apiKeyEnv,
    packageName: '@ai-sdk/openai-compatible',
  }));
  const found = [...services, ...own].map(({ id, variable, packageName }) => {
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
