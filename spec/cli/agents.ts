// Agents for tests of the command line: documents with scripts for their models, and a tool that leaves a line for each
// time it ran.

import { chmodSync } from 'node:fs';
import type { Approval } from '../../src/protocol/index.js';
import { ends, Project } from '../support/cli-project.js';

const prompt = { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] };
const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

/** The tool that pays: appends the amount to a file, and waits for a file of the name `until` if it is told to. */
const PAY = `#!/usr/bin/env node
import { appendFileSync, readFileSync } from 'node:fs';
const { amount } = JSON.parse(readFileSync(0, 'utf8'));
appendFileSync('paid.log', amount + '\\n');
process.stdout.write(JSON.stringify({ paid: amount }));
`;

export const call = (name: string, args: object): object => ({ name, args });

/** A project with agents; what pays asks, and is trusted. */
export class Agents extends Project {
  constructor() {
    super({});
    this.write('loops/pay.json', {
      ...{ id: 'pay', name: 'pay', version: '1.0.0', kind: 'tool', ...ends() },
      tool: { implementation: 'exec:pay' },
    });
    chmodSync(this.write('loops/pay', PAY), 0o755);
    this.holding();
  }

  /** Adds an agent whose model says these things, one after another. */
  agent(id: string, script: readonly object[], spec: object = {}): this {
    this.write(`loops/${id}.script`, script);
    this.write(`loops/${id}.json`, {
      ...{ id, name: id, version: '1.0.0', kind: 'composite', inputSchema: prompt, outputSchema: text },
      composite: { agent: { backend: { id: 'scripted', model: `${id}.script` }, tools: [], ...spec } },
    });
    return this;
  }

  /** An agent that pays once, and is asked about it. */
  payer(id = 'payer', more: readonly object[] = [{ text: 'It is paid.' }]): this {
    const script = [{ text: 'I pay. ', toolCalls: [call('pay', { amount: 5 })] }, ...more];
    return this.agent(id, script, { tools: ['pay'], approvals: { pay: 'ask' } });
  }

  /** Agents three levels deep, of which the last pays twice at once. */
  deep(): this {
    const pays = [call('pay', { amount: 1 }), call('pay', { amount: 2 })];
    return this.agent('top', [{ toolCalls: [call('mid', { prompt: 'a' })] }, { text: 'All done.' }], { tools: ['mid'] })
      .agent('mid', [{ toolCalls: [call('low', { prompt: 'b' })] }, { text: 'Mid done.' }], { tools: ['low'] })
      .agent('low', [{ text: 'I pay twice.', toolCalls: pays }, { text: 'Low done.' }], {
        tools: ['pay'],
        approvals: { '*': 'ask' },
      });
  }

  /** The amounts that were paid, in order. */
  get paid(): readonly string[] {
    return this.has('loops/paid.log') ? this.read('loops/paid.log').trimEnd().split('\n') : [];
  }

  approvals(): Promise<readonly Approval[]> {
    return this.json<readonly Approval[]>(['approvals']);
  }
}
