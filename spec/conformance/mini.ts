// The driver of the mini runtime: correct, or with one deliberate mistake.

import type { CodeBody, LsemDriver, ToolBody } from '../../src/conformance/driver.js';
import { Mini } from './mini-runtime.js';
import { mutants, type Wrong } from './mutants.js';

/** Returns a driver of the mini runtime. `wrong` names the mutant, and so the check that it must fail. */
export function mini({ wrong }: { readonly wrong?: Wrong } = {}): LsemDriver {
  const fail: ToolBody = () => {
    throw new Error('this tool always fails');
  };
  const tools = new Map<string, ToolBody>([
    ['echo', (input) => input],
    ['fail', fail],
  ]);
  const codes = new Map<string, CodeBody>();
  const composite = (id: string, body: object) => {
    const schemas = { inputSchema: {}, outputSchema: {} };
    return { id, name: id, version: '1.0.0', kind: 'composite', ...schemas, composite: { steps: [], ...body } };
  };
  const Runtime = wrong === undefined ? Mini : mutants[wrong];
  return {
    name: wrong === undefined ? 'mini' : `mini, wrong in ${wrong}`,
    open: () => new Runtime(tools, codes),
    profile: {
      prompt: (say) => ({ say }),
      systemPrompt: (say, system) => ({ say, system }),
      code(id, body) {
        const code = `code-${codes.size}`;
        codes.set(code, body);
        return composite(id, { code });
      },
      agent: (id, agent) => composite(id, { agent }),
      plan: (id, plan) => composite(id, { plan }),
      backend: {
        answering: { ref: { is: 'parrot' }, id: 'parrot', model: 'parrot-1' },
        failing: { is: 'mute' },
        unknown: { is: 'unknown' },
      },
      tool: {
        echo: { use: 'echo' },
        failing: { use: 'fail' },
        unknown: { use: 'nothing' },
        custom(name, body) {
          tools.set(name, body);
          return { use: name };
        },
      },
      path: { input: '$.in', binding: (name) => `$.done.${name}` },
    },
  };
}
