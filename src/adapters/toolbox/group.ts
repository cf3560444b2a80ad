/** The process groups of running commands. They end with their command, and at the latest with this process. */
const running = new Set<number>();

const endAll = (): void => {
  for (const leader of running) send(leader, 'SIGKILL');
};

function send(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // Nobody is left in it.
  }
}

/** A group whose leader was started in a session of its own. */
export class Group {
  private readonly leader: number;

  constructor(leader: number) {
    this.leader = leader;
    if (running.size === 0) process.on('exit', endAll);
    running.add(leader);
  }

  /** To all members; after the end nothing is sent, as the number may be somebody else's by then. */
  signal(signal: NodeJS.Signals): void {
    if (running.has(this.leader)) send(this.leader, signal);
  }

  /** To be called at once when the leader has ended: kills what it left behind. */
  end(): void {
    this.signal('SIGKILL');
    running.delete(this.leader);
    if (running.size === 0) process.off('exit', endAll);
  }
}
