// Agents for tests of the command line: definitions with scripted models, and a tool that logs each run.

import { chmodSync } from 'node:fs';
import type { Approval, TurnResult } from '../../src/protocol/index.js';
import { Project, schemas } from '../support/cli-project.js';

const prompt = { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] };
const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

/** The program of the tool `pay`: appends the amount, as JSON, to a file. A program of Node would start slowly. */
const PAY_PROGRAM = `#!/bin/sh
input=$(cat)
amount=\${input#'{"amount":'}
amount=\${amount%'}'}
printf '%s\\n' "$amount" >> paid.log
printf '{"paid":%s}' "$amount"
`;

/** A tool call of a scripted model. */
export const call = (name: string, args: object): object => ({ name, args });

/** What an answer to an approval prints with `--json`. */
export interface AnswerReport {
  readonly approval: Approval;
  readonly approved: boolean;
  readonly turn: TurnResult;
}

/** Runs the agent of `payer()` in the session `s`. */
export const RUN_PAYER = ['run', 'payer', '--input', '{"prompt": "pay"}', '--session', 's'];

/** A trusted project with agents and the tool `pay`. */
export class Agents extends Project {
  constructor() {
    super({});
    this.write('loops/pay.json', {
      ...{ id: 'pay', name: 'pay', version: '1.0.0', kind: 'tool', ...schemas() },
      tool: { implementation: 'exec:pay' },
    });
    chmodSync(this.write('loops/pay', PAY_PROGRAM), 0o755);
    this.withHoldTool();
  }

  /** Adds an agent whose model returns these replies in order. */
  agent(id: string, script: readonly object[], spec: object = {}): this {
    this.write(`loops/${id}.script`, script);
    this.write(`loops/${id}.json`, {
      ...{ id, name: id, version: '1.0.0', kind: 'composite', inputSchema: prompt, outputSchema: text },
      composite: { agent: { backend: { id: 'scripted', model: `${id}.script` }, tools: [], ...spec } },
    });
    return this;
  }

  /** Adds an agent that pays once, with an approval. */
  payer(id = 'payer', more: readonly object[] = [{ text: 'It is paid.' }]): this {
    const script = [{ text: 'I pay. ', toolCalls: [call('pay', { amount: 5 })] }, ...more];
    return this.agent(id, script, { tools: ['pay'], approvals: { pay: 'ask' } });
  }

  /** Adds agents three levels deep; the innermost pays twice in one reply. */
  deep(): this {
    const payments = [call('pay', { amount: 1 }), call('pay', { amount: 2 })];
    return this.agent('top', [{ toolCalls: [call('mid', { prompt: 'a' })] }, { text: 'All done.' }], { tools: ['mid'] })
      .agent('mid', [{ toolCalls: [call('low', { prompt: 'b' })] }, { text: 'Mid done.' }], { tools: ['low'] })
      .agent('low', [{ text: 'I pay twice.', toolCalls: payments }, { text: 'Low done.' }], {
        tools: ['pay'],
        approvals: { '*': 'ask' },
      });
  }

  /** The paid amounts, in order. */
  get paid(): readonly string[] {
    return this.has('loops/paid.log') ? this.read('loops/paid.log').trimEnd().split('\n') : [];
  }

  /** Returns the pending approvals. */
  async approvals(): Promise<readonly Approval[]> {
    return (await this.json<{ readonly approvals: readonly Approval[] }>(['approvals'])).approvals;
  }
}
