/** Prints what a worker reports: turns that are not continued, and hosted loops that have stopped or are paused. */
import type { HostedLoopPause, HostedLoopStop, WorkProblem } from '../../host/worker.js';
import type { Terminal } from './terminal.js';
import { sanitizeText } from './terminal-text.js';

/** The reports of a worker, for `Host.work`. */
interface WorkReports {
  onProblem(problem: WorkProblem): void;
  onStop(stop: HostedLoopStop): void;
  onPause(pause: HostedLoopPause): void;
}

/** Returns functions that print reports on stderr. `onPrint` is called before each. */
export function workReportsOf(terminal: Terminal, onPrint: () => void = () => undefined): WorkReports {
  const print = (...lines: readonly string[]): void => {
    onPrint();
    for (const line of lines) terminal.printToStderr(sanitizeText(line));
  };
  return {
    onProblem: ({ turnId, code, message }) => print(`${turnId} is not continued here. ${code}: ${message}`),
    onStop: ({ loop, reason, message }) => print(`${loop} stopped: ${reason}. ${message}`),
    onPause: ({ loop, reason, message }) =>
      print(`${loop} is paused: ${reason}. ${message}`, `When it is repaired: rondo host resume ${loop}`),
  };
}
