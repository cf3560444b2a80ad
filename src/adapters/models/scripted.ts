/**
 * The backend `scripted`: the answers stand in a file, one for each call. A turn begins at the step after the answers
 * that its journal has, then counts in this process. Failures are not answers: a turn that goes on in a new process
 * meets the steps again that have failed it in the old one.
 */
import { LoopError } from '../../base/errors.js';
import type { Backend } from '../../loops/model.js';
import type { ModelCallOptions } from '../../protocol/model.js';
import { type Answer, answering, wordsOf } from './answering.js';
import { placeOf, type Step, stepsOf } from './script.js';
import { optionsOf, refused } from './settings.js';

/** A script that a turn did not get to the end of. */
export interface Leftover {
  readonly script: string;
  readonly turn: string;
  readonly left: number;
}

/** A backend that can tell which scripts were not used up, so that a test can fail on them. */
export interface ScriptedBackend extends Backend {
  leftovers(): readonly Leftover[];
}

/** How far a turn is in a script. */
interface Progress {
  readonly script: string;
  readonly turn: string;
  readonly steps: readonly Step[];
  position: number;
}

/** A backend that answers from script files. */
export function scriptedBackend(): ScriptedBackend {
  const known = new Map<string, Progress>();
  return {
    id: 'scripted',
    defaultModel: '',
    async open(ref, { origin, turn, answered }) {
      optionsOf(ref, []);
      if (ref.model === '') throw refused("The backend 'scripted' needs the path of a script file as its model.");
      const script = await placeOf(ref.model, origin);
      const key = JSON.stringify([turn, script]);
      const steps = known.get(key)?.steps ?? (await stepsOf(script));
      // Another branch of the turn may have been here while the file was read.
      const progress = known.get(key) ?? { script, turn, steps, position: answered };
      known.set(key, progress);
      return answering('scripted', ref.model, (call) => answerOf(progress, call));
    },
    leftovers: () =>
      [...known.values()]
        .map(({ script, turn, steps, position }) => ({ script, turn, left: steps.length - position }))
        .filter(({ left }) => left > 0),
  };
}

function answerOf(progress: Progress, call: ModelCallOptions): Answer {
  const { script, steps } = progress;
  const position = progress.position++;
  const step = steps[position];
  if (step === undefined) {
    throw refused(`The script '${script}' has ${steps.length} steps, and was called for element ${position}; add it.`);
  }
  const request = wordsOf(call.prompt);
  const missing = step.expect.filter((part) => !request.includes(part));
  if (missing.length > 0) {
    const parts = missing.map((part) => JSON.stringify(part)).join(', ');
    throw refused(`The script '${script}', element ${position}, expects ${parts} in the request, which is not there.`);
  }
  if (step.error === undefined) return step.answer;
  const { message, retryable } = step.error;
  return { ...step.answer, failure: new LoopError('BACKEND_FAILED', message.slice(0, 500), { retryable }) };
}
