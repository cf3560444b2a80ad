/** Parses the command line, runs the verb and reports errors. */
import { Command, CommanderError } from 'commander';
import { nearestWord } from '../../base/nearest-word.js';
import { type Flags, UsageError } from '../settings.js';
import { reportError } from './error-report.js';
import { PERMISSION_FLAGS, SETTING_FLAGS } from './setting-flags.js';
import type { Terminal } from './terminal.js';
import { exitCodes, type Verb, type VerbOptions } from './verb.js';
import { verbs } from './verbs.js';

/** The version that `rondo --version` prints. */
export const VERSION = '0.1.0';

const EXIT_CODE_HELP = `
Exit codes: 0 ok, 1 failed or not found, 2 paused, 3 verification failed, 64 usage error,
70 internal error or broken setup, 130 interrupted.
`;

/** Verbs whose JSON output is one document per line. */
const NDJSON_VERBS: ReadonlySet<string> = new Set(['trace', 'events', 'chat', 'worker', 'dev']);

/** Runs one command line in this process and returns the exit code, after everything is written. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  return terminal.finish(await runVerb(args, terminal));
}

async function runVerb(args: readonly string[], terminal: Terminal): Promise<number> {
  const json = args.includes('--json');
  terminal.isProgressEnabled = !json;
  let code: number = exitCodes.ok;
  let verbName: string | undefined;
  const program = createProgram(terminal, async (verb, verbArgs, options, flags) => {
    const { env, cwd } = terminal.streams;
    verbName = verb.name;
    const handler = await verb.load();
    code = await handler({ args: verbArgs, options, settingsInput: { flags, env, cwd }, terminal, json });
  });
  try {
    assertHelpTopic(args);
    // Without arguments, the help is what the user wants to see, not an error.
    await program.parseAsync(args.length === 0 || args.join(' ') === 'help help' ? ['--help'] : [...args], {
      from: 'user',
    });
    return code;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return reportParseError(thrown, args, terminal, json);
    // Line-delimited output contains only its own documents, so its errors go to stderr only.
    return reportError(thrown, terminal, json && !NDJSON_VERBS.has(verbName ?? ''));
  }
}

/** Throws a UsageError for `rondo help` with the name of a verb that does not exist. */
function assertHelpTopic([verb, topic]: readonly string[]): void {
  const names = ['help', ...verbs.map(({ name }) => name)];
  if (verb !== 'help' || topic === undefined || topic.startsWith('-') || names.includes(topic)) return;
  const suggestion = nearestWord(topic, names);
  const hint = suggestion === undefined ? '' : ` Did you mean "${suggestion}"?`;
  throw new UsageError(`There is no verb "${topic}".${hint} See: rondo --help`);
}

type HandleVerb = (verb: Verb, args: readonly string[], options: VerbOptions, flags: Flags) => Promise<void>;

function createProgram(terminal: Terminal, handleVerb: HandleVerb): Command {
  const { stdout, stderr } = terminal.streams;
  const program = new Command('rondo');
  program
    .description('A runtime for durable agent loops.')
    .usage('[settings] <verb> [arguments]')
    .version(VERSION)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.print(text),
      writeErr: (text) => terminal.printToStderr(text.trimEnd()),
      outputError: () => undefined,
      getOutHelpWidth: () => terminal.lineWidth(stdout),
      getErrHelpWidth: () => terminal.lineWidth(stderr),
    })
    .addHelpText('after', '\nExamples:\n  $ rondo list\n  $ rondo run hello --input \'{"name": "Ada"}\'')
    .addHelpText('after', EXIT_CODE_HELP);
  addSettingOptions(program);
  for (const verb of verbs) addVerb(program, verb, handleVerb);
  return program.commandsGroup('System:').helpCommand('help [verb]', 'Show the help of a verb.');
}

const appendOption = (value: string, values: readonly string[] = []): string[] => [...values, value];

function addSettingOptions(command: Command): void {
  command.optionsGroup('Settings:');
  for (const [flags, help] of SETTING_FLAGS) command.option(flags, help);
  for (const [flags, help] of PERMISSION_FLAGS) command.option(flags, help, appendOption);
}

function addVerb(program: Command, verb: Verb, handleVerb: HandleVerb): void {
  const command = program.command(`${verb.name} ${verb.arguments}`.trim()).helpGroup(`${verb.group}:`);
  command.description(verb.description).addHelpText('after', `${commandsOf(verb)}${examplesOf(verb)}`);
  for (const [flags, help, repetition] of verb.options) {
    if (repetition === undefined) command.option(flags, help);
    else command.option(flags, help, appendOption);
  }
  addSettingOptions(command);
  command.action(async () => {
    // Flags may stand before or after the verb.
    const [outer, inner] = [program.opts<Flags>(), command.opts<Flags & VerbOptions>()];
    const both = (key: 'trust' | 'send' | 'reach'): string[] => [...(outer[key] ?? []), ...(inner[key] ?? [])];
    const permissions = { trust: both('trust'), send: both('send'), reach: both('reach') };
    await handleVerb(verb, command.processedArgs as string[], inner, { ...outer, ...inner, ...permissions });
  });
}

function commandsOf({ commands = [] }: Verb): string {
  const width = Math.max(...commands.map(([usage]) => usage.length));
  const lines = commands.map(([usage, help]) => `\n  ${usage.padEnd(width)}  ${help}`);
  return lines.length === 0 ? '' : `\nCommands:${lines.join('')}\n`;
}

function examplesOf({ examples }: Verb): string {
  return `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((line) => `  $ ${line}`).join('\n')}`;
}

/** Commander throws for help and the version too; everything else is a usage error. */
async function reportParseError(
  error: CommanderError,
  args: readonly string[],
  terminal: Terminal,
  json: boolean,
): Promise<number> {
  const { code, message, exitCode } = error;
  if (code === 'commander.helpDisplayed' || code === 'commander.version') return exitCodes.ok;
  // Help that was requested has the exit code 0; help because the verb is missing has another one.
  if (code === 'commander.help') return exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const text = message.replace(/^error: /, '').replace(/\n+/g, ' ');
  const sentence = `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?)]$/.test(text) ? '' : '.'}`;
  const verb = args.find((arg) => verbs.some(({ name }) => name === arg));
  const help = verb === undefined ? 'rondo --help' : `rondo help ${verb}`;
  return reportError(new UsageError(`${sentence} See: ${help}`), terminal, json);
}
