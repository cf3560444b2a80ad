/** The command line: verbs with their help, and what becomes of a line that is not one of ours. */
import { Command, CommanderError } from 'commander';
import { type Flags, UsageError } from '../settings.js';
import { reportError } from './error-report.js';
import type { Terminal } from './terminal.js';
import { exitCodes, type Verb, type VerbOptions } from './verb.js';
import { verbs } from './verbs.js';

export const VERSION = '0.1.0';

const SETTING_FLAGS: readonly (readonly [flags: string, means: string])[] = [
  ['--data <dir>', 'where the journal is kept (RONDO_DATA; default .rondo)'],
  ['--loops <dir>', 'where the definitions are (RONDO_LOOPS; default loops)'],
  ['--config <file>', 'settings of the project (RONDO_CONFIG; default rondo.toml if it is there)'],
  ['--store <url>', 'sqlite:, sqlite:PATH or memory: (RONDO_STORE; default sqlite: in the data directory)'],
  ['--engine <name>', 'what runs the turns (RONDO_ENGINE; default local)'],
];

/** What the operator allows; each may be repeated. */
const ALLOWANCE_FLAGS: readonly (readonly [flags: string, means: string])[] = [
  ['--trust <dir>', 'let definitions of this directory run code; may be repeated (RONDO_TRUST, see: rondo trust)'],
  ['--send <var=host>', 'let this variable be sent to this host; may be repeated (RONDO_SEND)'],
  ['--reach <host>', 'let this host be reached though it is not public; may be repeated (RONDO_REACH)'],
];

const EXIT_CODE_HELP = `
Exit codes: 0 ok, 1 failed or not found, 2 paused, 3 verification did not pass, 64 usage,
70 a fault of the machinery or the set-up, 130 interrupted.
`;

/** Verbs that answer with one document a line. */
const NDJSON_VERBS: ReadonlySet<string> = new Set(['trace', 'events', 'chat']);

/** Runs one command line and tells with which code to end. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const json = args.includes('--json');
  let code: number = exitCodes.ok;
  let used: string | undefined;
  const program = createProgram(terminal, async (verb, given, options, flags) => {
    const { env, cwd } = terminal.streams;
    used = verb.name;
    const act = await verb.load();
    code = await act({ args: given, options, settingsInput: { flags, env, cwd }, terminal, json });
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return reportParseError(thrown, terminal, json);
    // An answer of many documents stays one: what went wrong is told to the person only.
    return reportError(thrown, terminal, json && !NDJSON_VERBS.has(used ?? ''));
  }
}

type RunVerb = (verb: Verb, args: readonly string[], options: VerbOptions, flags: Flags) => Promise<void>;

function createProgram(terminal: Terminal, use: RunVerb): Command {
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
  for (const verb of verbs) addVerb(program, verb, use);
  return program.commandsGroup('System:').helpCommand('help [verb]', 'Show how a verb is used.');
}

const appendOption = (value: string, before: readonly string[] = []): string[] => [...before, value];

function addSettingOptions(command: Command): void {
  command.optionsGroup('Settings:');
  for (const [flags, means] of SETTING_FLAGS) command.option(flags, means);
  for (const [flags, means] of ALLOWANCE_FLAGS) command.option(flags, means, appendOption);
}

function addVerb(program: Command, verb: Verb, use: RunVerb): void {
  const command = program.command(`${verb.name} ${verb.arguments}`.trim()).helpGroup(`${verb.group}:`);
  command.description(verb.description).addHelpText('after', examplesOf(verb));
  for (const [flags, means, often] of verb.options) {
    if (often === undefined) command.option(flags, means);
    else command.option(flags, means, appendOption);
  }
  addSettingOptions(command);
  command.action(async () => {
    const [outer, inner] = [program.opts<Flags>(), command.opts<Flags & VerbOptions>()];
    const both = (key: 'trust' | 'send' | 'reach'): string[] => [...(outer[key] ?? []), ...(inner[key] ?? [])];
    const allowed = { trust: both('trust'), send: both('send'), reach: both('reach') };
    await use(verb, command.processedArgs as string[], inner, { ...outer, ...inner, ...allowed });
  });
}

function examplesOf({ examples }: Verb): string {
  return `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((line) => `  $ ${line}`).join('\n')}`;
}

/** Help and the version are answers; anything else is a line that was not understood. */
async function reportParseError({ code, message }: CommanderError, terminal: Terminal, json: boolean): Promise<number> {
  if (code === 'commander.helpDisplayed' || code === 'commander.version') return exitCodes.ok;
  if (code === 'commander.help') return exitCodes.usage;
  const said = message.replace(/^error: /, '').replace(/\n+/g, ' ');
  const told = `${said.charAt(0).toUpperCase()}${said.slice(1)}${/[.?)]$/.test(said) ? '' : '.'}`;
  return reportError(new UsageError(`${told} See: rondo --help`), terminal, json);
}
