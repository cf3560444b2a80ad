/** Process groups that run: signalled as a whole, and killed when this process ends before they do. */
const running = new Set<number>();

/** Sends a signal to all members of a group in care; once it has ended, its number may be somebody else's. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  if (!running.has(leader)) return;
  try {
    process.kill(-leader, signal);
  } catch {
    // Nobody is left.
  }
}

function killAll(): void {
  for (const leader of running) signalGroup(leader, 'SIGKILL');
}

/** Takes a group into care; its leader must have been started in a session of its own. */
export function keepGroup(leader: number): void {
  if (running.size === 0) process.on('exit', killAll);
  running.add(leader);
}

/** Kills what the leader left behind. To be called at once when it has ended. */
export function endGroup(leader: number): void {
  signalGroup(leader, 'SIGKILL');
  running.delete(leader);
  if (running.size === 0) process.off('exit', killAll);
}
