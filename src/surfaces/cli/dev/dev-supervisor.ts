/** Keeps one child process with the current definitions, and replaces it when the project changes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { DEV_PROCESS_ENV, type DevProgress, type DevRequest, type LoadReport } from './messages.js';

/** How long the processes may take to finish their turns when `rondo dev` ends. */
const STOP_GRACE_MS = 5000;

/** Receives what happens to the child processes. */
interface DevListener {
  onLoad(report: LoadReport): void;
  onProblem(reason: string): void;
}

/** The child processes of one `rondo dev`. */
export class DevSupervisor {
  private readonly listener: DevListener;
  private readonly args: readonly string[];
  private current: ChildProcess | undefined;
  /** All processes that have not exited, including those that finish their turns with old definitions. */
  private readonly running = new Set<ChildProcess>();

  constructor(args: readonly string[], listener: DevListener) {
    this.args = args;
    this.listener = listener;
  }

  /** Starts a process that loads the project anew. The process before it takes no more work. */
  reload(): void {
    const previous = this.current;
    const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...this.args], {
      // What definitions print goes to stderr: stdout is for events. A group of its own keeps Ctrl-C from ending it.
      stdio: ['ignore', 2, 2, 'ipc'],
      env: { ...process.env, [DEV_PROCESS_ENV]: '1' },
      detached: true,
    });
    this.current = child;
    this.running.add(child);
    child.on('message', (message) => this.receive(child, message as DevProgress));
    child.on('error', (error) => this.listener.onProblem(error.message));
    child.on('exit', (code, signal) => {
      this.running.delete(child);
      if (this.current !== child) return;
      this.current = undefined;
      this.listener.onProblem(`the process of the definitions ended (${signal ?? `exit code ${code}`})`);
    });
    if (previous !== undefined) requestStop(previous);
  }

  /** Asks all processes to stop, and waits until they have parked or finished their turns. */
  async stop(): Promise<void> {
    this.current = undefined;
    const exits = [...this.running].map((child) => new Promise<void>((resolve) => child.once('exit', () => resolve())));
    for (const child of this.running) requestStop(child);
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, STOP_GRACE_MS);
    });
    await Promise.race([Promise.all(exits), grace]);
    clearTimeout(timer);
    for (const child of this.running) child.kill('SIGKILL');
  }

  private receive(child: ChildProcess, { loaded, failed }: DevProgress): void {
    // A process that has been replaced meanwhile has nothing to report.
    if (child !== this.current) return;
    if (loaded !== undefined) this.listener.onLoad(loaded);
    if (failed !== undefined) this.listener.onProblem(failed);
  }
}

function requestStop(child: ChildProcess): void {
  const request: DevRequest = { stop: true };
  if (child.connected) child.send(request, () => undefined);
}
