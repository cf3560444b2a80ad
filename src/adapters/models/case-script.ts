/**
 * The models of one case of a harness: one list of replies for all of them, whatever their provider and name. What the
 * case asks of them beyond the list, and what it leaves unused, is reported, because a loop may catch the error of a call.
 */
import { LoopError } from '../../base/errors.js';
import type { ModelProvider } from '../../loops/model.js';
import type { ModelCallOptions } from '../../protocol/model.js';
import { permanentBackendError } from './backend-options.js';
import { type CannedReply, createCannedModel, promptTextOf } from './canned-model.js';
import type { ScriptStep } from './script.js';

/** A difference between the script of a case and the calls of its models. */
export interface ScriptProblem {
  /** A JSON Pointer into the case. */
  readonly path: string;
  readonly expected: string;
  readonly actual: string;
}

/** The models of a case. */
export interface CaseScript extends ModelProvider {
  /** Returns what differs: calls without a step, requests without an expected text, and unused steps. */
  problems(): readonly ScriptProblem[];
}

/** Creates the models of a case, which reply with these steps, one after another. */
export function caseScript(steps: readonly ScriptStep[]): CaseScript {
  const problems: ScriptProblem[] = [];
  let position = 0;
  const fail = (problem: ScriptProblem): never => {
    problems.push(problem);
    throw permanentBackendError(`The script of the case, ${problem.path}: expected ${problem.expected}.`);
  };
  const replyTo = (called: string, call: ModelCallOptions): CannedReply => {
    const path = `/script/${position}`;
    const step = steps[position++];
    if (step === undefined) return fail({ path, expected: 'no further model call', actual: `a call of ${called}` });
    const request = promptTextOf(call.prompt);
    const missing = step.expect.filter((part) => !request.includes(part)).map((part) => JSON.stringify(part));
    // guard: scripted-expectation-checked
    if (missing.length > 0)
      return fail({
        path: `${path}/expect`,
        expected: `a request that contains ${missing.join(', ')}`,
        actual: `a request to ${called} without it`,
      });
    if (step.error === undefined) return step.reply;
    const { message, retryable } = step.error;
    return { ...step.reply, error: new LoopError('BACKEND_FAILED', message.slice(0, 500), { retryable }) };
  };
  return {
    id: 'scripted',
    defaultModel: 'scripted-1',
    repliesLocally: true,
    open: async ({ id, model }) => createCannedModel(id, model, (call) => replyTo(`${id}:${model}`, call)),
    problems: () => {
      const unused = steps.length - position;
      if (unused <= 0) return problems;
      const expected = `${steps.length} model calls`;
      return [...problems, { path: '/script', expected, actual: `${position}, so ${unused} steps are unused` }];
    },
  };
}
