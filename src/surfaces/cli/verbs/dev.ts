/** `rondo dev`: reloads the definitions when they change, reports problems, and continues turns that are due. */
import { relative } from 'node:path';
import { loadSettings } from '../../compose.js';
import { DevSupervisor } from '../dev/dev-supervisor.js';
import { changesBetween, loadLines } from '../dev/load-changes.js';
import { DEV_PROCESS_ENV, type LoadReport } from '../dev/messages.js';
import { ProjectWatcher } from '../dev/watch-files.js';
import { warnUntrustedEnvFile } from '../open-host.js';
import type { Terminal } from '../terminal.js';
import { sanitizeMessage, sanitizeText } from '../terminal-text.js';
import type { VerbHandler } from '../verb.js';

/** Handles `rondo dev`. It ends when it is interrupted. */
export const dev: VerbHandler = async (invocation) => {
  const { settingsInput, terminal, json } = invocation;
  if (terminal.streams.env[DEV_PROCESS_ENV] === '1' && process.send !== undefined) {
    return (await import('../dev/dev-process.js')).runDevProcess(invocation);
  }
  const settings = await loadSettings(settingsInput);
  warnUntrustedEnvFile(settings, terminal);
  const { cwd, loopsDirectory, dataDirectory, config } = settings;
  const report = new DevReport(terminal, json);
  const supervisor = new DevSupervisor(process.argv.slice(2), report);
  const watched = { projectDirectory: cwd, loopsDirectory, dataDirectory, configFile: config.file };
  const watcher = new ProjectWatcher(watched, (files) => {
    report.onChange(files.map((file) => relative(cwd, file) || '.'));
    supervisor.reload();
  });
  report.onStart(relative(cwd, loopsDirectory) || '.');
  supervisor.reload();
  await new Promise<void>((resolve) => {
    terminal.onInterrupt = async () => {
      watcher.close();
      await supervisor.stop();
      report.onStop();
      resolve();
      return 'Stopped. Turns that are not finished continue with: rondo dev, or rondo resume --all';
    };
  });
  // The signal handler exits the process with the code of an interruption.
  return new Promise<never>(() => undefined);
};

/** Prints what happens: lines on stderr, or with `json` one event per line on stdout. */
class DevReport {
  private readonly terminal: Terminal;
  private readonly json: boolean;
  private lastLoad: LoadReport | undefined;

  constructor(terminal: Terminal, json: boolean) {
    this.terminal = terminal;
    this.json = json;
  }

  onStart(loops: string): void {
    this.print({ type: 'started', pid: process.pid, loops }, [
      `Watching ${sanitizeText(loops)}. Stop with Ctrl-C.`,
      "From another terminal, any verb works: rondo list, rondo run LOOP --input '{…}', rondo approvals",
    ]);
  }

  onChange(files: readonly string[]): void {
    this.print({ type: 'changed', files }, [`Changed: ${files.map((file) => sanitizeText(file)).join(', ')}`]);
  }

  onLoad(load: LoadReport): void {
    const changes = changesBetween(this.lastLoad?.loops ?? [], load.loops);
    this.print({ type: 'loaded', ...load, ...changes }, loadLines(load, changes, this.lastLoad === undefined));
    this.lastLoad = load;
  }

  onProblem(reason: string): void {
    this.print({ type: 'failed', reason }, [`Not loaded: ${sanitizeMessage(reason)}`]);
  }

  onStop(): void {
    this.print({ type: 'stopped' }, []);
  }

  private print(event: object, lines: readonly string[]): void {
    if (this.json) void this.terminal.printJson(event);
    else for (const line of lines) this.terminal.printToStderr(line);
  }
}
