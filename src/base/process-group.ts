/** Process groups of child processes: signalled as one, and killed if this process exits before they do. */

/** The leaders of all groups that have not ended. */
const runningGroups = new Set<number>();

/** Kills all groups when this process exits. */
const killAll = (): void => {
  for (const leader of runningGroups) sendSignal(leader, 'SIGKILL');
};

function sendSignal(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(/* guard: process-group-killed */ -leader, signal);
  } catch {
    // The group has no members left, or none that this process may signal.
  }
}

/** A process group whose leader was spawned with `detached: true`. */
export class ProcessGroup {
  private readonly leader: number;

  constructor(leader: number) {
    this.leader = leader;
    if (runningGroups.size === 0) process.on('exit', killAll);
    runningGroups.add(leader);
  }

  /** Sends a signal to all members. After `end` nothing is sent: the operating system may have reused the id. */
  signal(signal: NodeJS.Signals): void {
    if (runningGroups.has(this.leader)) sendSignal(this.leader, signal);
  }

  /** Kills the remaining members; later signals are not sent. Call it as soon as the leader has exited. */
  end(): void {
    this.signal('SIGKILL');
    runningGroups.delete(this.leader);
    if (runningGroups.size === 0) process.off('exit', killAll);
  }
}
