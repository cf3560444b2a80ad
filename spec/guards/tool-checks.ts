// Checks of tools in code: each holds on the intact library and fails when its guard is broken.

import { ok, throws } from 'node:assert';
import { z } from 'zod';
import type { LibraryParts } from './library.js';

export const toolParts: LibraryParts = ['protocol/tool.js', 'loops/define-agent.js'];

export type ToolLibrary = typeof import('../../src/protocol/tool.js') &
  typeof import('../../src/loops/define-agent.js');

type ToolCheck = (library: ToolLibrary) => Promise<void>;

const definition = { name: 'refund', inputSchema: z.object({}), execute: () => 'ran' };
const CALL = { toolCallId: 'c', messages: [] };

export const toolChecks = {
  'outside of a host, a tool with requestApproval does not run': async ({ tool, ApprovalRequiredError }) => {
    const asking = tool({ ...definition, requestApproval: () => 'Refund?' });
    throws(() => asking.execute({}, CALL), ApprovalRequiredError);
  },
  'outside of a host, a tool that asks without a question does not run': async ({ tool, ApprovalRequiredError }) => {
    const asking = tool({ ...definition, approval: 'ask' });
    throws(() => asking.execute({}, CALL), ApprovalRequiredError);
    ok(tool(definition).execute({}, CALL) === 'ran');
  },
  'an inline tool does not share its name with another tool': async ({ tool, defineAgent }) => {
    throws(() => defineAgent({ id: 'desk', model: 'm', tools: [tool(definition), 'refund'] }), /would both see/);
  },
} satisfies { readonly [promise: string]: ToolCheck };
