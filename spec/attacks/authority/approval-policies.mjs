// Which calls require approval: policies by name and for all tools, at each depth, with unusual names, modes, and
// bodies in code.

import { createHost, expect, modelOf, outcome, rondoLibrary, toolsLibrary } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const BASE_DEFINITION = { name: 'n', version: '1.0.0', inputSchema: true, outputSchema: true };
const step = (/** @type {string} */ loopId) => ({ loopId, inputMapping: '$.input' });
const composite = (/** @type {string} */ id, /** @type {string[]} */ ...loops) => ({
  ...BASE_DEFINITION,
  id,
  kind: 'composite',
  composite: { steps: loops.map(step) },
});

/** Creates a host whose models follow a plan of tool calls. `ran` lists the executed tools. */
async function createPlannedHost() {
  const ran = /** @type {string[]} */ ([]);
  const rondo = await rondoLibrary();
  const implementation = {
    scheme: 'act',
    unavailableReason: () => undefined,
    approvalDescriber: () => undefined,
    targetResolver: () => undefined,
    open: async (/** @type {string} */ target) => () => {
      ran.push(target);
      return { ran: target };
    },
  };
  const implementations = new Map([['act', implementation]]);
  const registry = new rondo.Registry(implementations);
  const plans = new Map();
  const answersOf = (/** @type {string} */ name) =>
    modelOf(name, ({ tools = [] }) => {
      const plan = plans.get(name);
      const call = plan?.shift();
      const toolNames = tools.map((/** @type {any} */ tool) => tool.name);
      const toolName = typeof call === 'number' ? toolNames[call] : call;
      const content =
        call === undefined
          ? [{ type: 'text', text: 'done' }]
          : [{ type: 'tool-call', toolCallId: `c${plan.length}`, toolName, input: '{"prompt":"x"}' }];
      const reason = call === undefined ? 'stop' : 'tool-calls';
      return { content, finishReason: { unified: reason, raw: reason } };
    });
  const providers = new Map([['plan', { id: 'plan', defaultModel: 'm', open: async ({ model }) => answersOf(model) }]]);
  const { host } = await createHost({ registry, implementations, providers });
  const tool = (/** @type {string} */ id, more = {}) =>
    registry.add({ ...BASE_DEFINITION, id, kind: 'tool', tool: { implementation: `act:${id}` }, ...more });
  const agent = (/** @type {string} */ id, /** @type {(string | number)[]} */ plan, more = {}) => {
    plans.set(id, [...plan]);
    return registry.add({
      ...BASE_DEFINITION,
      id,
      kind: 'composite',
      composite: { agent: { backend: { id: 'plan', model: id }, tools: [], ...more } },
    });
  };
  const run = (/** @type {any} */ loop) => host.run({ loop, input: { prompt: 'x' }, sessionId: 's' });
  return { host, registry, ran, tool, agent, run, plans, rondo };
}

/**
 * Asserts that the turn waits for one approval of the tool before it runs, and runs it once after the approval.
 * @param {any} planned
 * @param {any} loop
 * @param {string} tool
 */
async function assertApprovalRequired({ host, ran, run }, loop, tool) {
  const paused = await run(loop);
  expect(paused.status === 'paused' && ran.length === 0, 'the turn to wait before a tool runs', {
    status: paused.status,
    error: paused.error,
    ran,
  });
  const [approval, ...more] = await host.archive.approvals('s');
  expect(
    approval?.tool === tool && more.length === 0,
    `one approval of ${tool}`,
    [approval, ...more].map((pending) => pending?.tool),
  );
  await host.answer({ id: approval.id, approved: true, by: 'ada' });
  await host.resume(paused.turnId);
  expect(ran.length === 1, 'the tool to run once', ran);
}

/** Tool names that are members of objects, or policies. */
const RESERVED_NAMES = [
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'then',
  'length',
  'always_allow',
];
/** Tool names with unusual characters. */
const UNUSUAL_NAMES = [
  'pay/now',
  'pay_now',
  '@scope/pay',
  'zahle größe',
  'pay.now',
  'x'.repeat(200),
  '支払',
  'pay now',
  '-',
  '_',
  'pay:now',
  'boss.pay',
];

/** @returns {import('../runner.mjs').Case[]} */
function nameCases() {
  const all = [...RESERVED_NAMES, ...UNUSUAL_NAMES].flatMap((id) =>
    ['star', 'named'].map((how) => ({
      id: `approvals.name.${how}.${id.length > 50 ? 'long' : id.replaceAll(' ', '+')}`,
      run: async () => {
        const planned = await createPlannedHost();
        planned.tool(id);
        planned.agent('root', [0], { tools: [id], approvals: { [how === 'star' ? '*' : id]: 'ask' } });
        await assertApprovalRequired(planned, 'root', id);
      },
    })),
  );
  const collisions = [
    ['pay/now', 'pay_2F_now'],
    ['größe', 'gr_F6__DF_e'],
  ].map(([one, other]) => ({
    id: `approvals.name.collides.${one}`,
    run: async () => {
      const planned = await createPlannedHost();
      planned.tool(one);
      planned.tool(other);
      const added = await outcome(
        (async () => {
          planned.agent('root', [one === undefined ? 0 : 1], {
            tools: [one, other],
            approvals: { [/** @type {string} */ (one)]: 'ask' },
          });
          return planned.run('root');
        })(),
      );
      const refused =
        added.code === 'DEFINITION_INVALID' || /** @type {any} */ (added.ok)?.error?.code === 'DEFINITION_INVALID';
      expect(refused && planned.ran.length === 0, 'two tools with the same encoded name to be refused', added);
    },
  }));
  const unknown = ['__proto__', 'Pay', 'pay ', 'p*', 'pay.*', 'AGENT.pay', 'pay@1.0.0'].map((name) => ({
    id: `approvals.name.unknown.${name.replaceAll(' ', '+')}`,
    run: async () => {
      const planned = await createPlannedHost();
      planned.tool('pay');
      const approvals = JSON.parse(`{${JSON.stringify(name)}: "ask"}`);
      const added = await outcome(
        (async () => {
          planned.agent('root', [0], { tools: ['pay'], approvals });
          return planned.run('root');
        })(),
      );
      const code = added.code ?? /** @type {any} */ (added.ok)?.error?.code;
      expect(code === 'DEFINITION_INVALID' && planned.ran.length === 0, 'a policy for an unknown tool to be refused', {
        code,
        ran: planned.ran,
      });
    },
  }));
  return [...all, ...collisions, ...unknown];
}

/**
 * Call paths from the root agent to the tool. The root agent has the policy.
 * @type {Record<string, (planned: any, rootPolicy: object) => void>}
 */
const CALL_PATHS = {
  direct: ({ agent }, rootPolicy) => agent('root', [0], { tools: ['pay'], ...rootPolicy }),
  'sub-agent': ({ agent }, rootPolicy) => {
    agent('helper', [0], { tools: ['pay'] });
    agent('root', [0], { tools: ['helper'], ...rootPolicy });
  },
  'sub-agent-allows': ({ agent }, rootPolicy) => {
    agent('helper', [0], { tools: ['pay'], approvals: { pay: 'always_allow', '*': 'always_allow' } });
    agent('root', [0], { tools: ['helper'], ...rootPolicy });
  },
  'sub-agent-unsupervised': ({ agent }, rootPolicy) => {
    agent('helper', [0], { tools: ['pay'], mode: 'unsupervised' });
    agent('root', [0], { tools: ['helper'], ...rootPolicy });
  },
  handoff: ({ agent }, rootPolicy) => {
    agent('helper', [0], { tools: ['pay'] });
    agent('root', [0], { handoffs: ['helper'], ...rootPolicy });
  },
  'handoff-unsupervised': ({ agent }, rootPolicy) => {
    agent('helper', [0], { tools: ['pay'], mode: 'unsupervised', approvals: { pay: 'always_allow' } });
    agent('root', [0], { handoffs: ['helper'], ...rootPolicy });
  },
  composite: ({ agent, registry }, rootPolicy) => {
    registry.add(composite('wrap', 'pay'));
    agent('root', [0], { tools: ['wrap'], ...rootPolicy });
  },
  'composite-of-agents': ({ agent, registry }, rootPolicy) => {
    agent('helper', [0], { tools: ['pay'], approvals: { '*': 'always_allow' } });
    registry.add(composite('inner', 'helper'));
    agent('mid', [0], { tools: ['inner'], mode: 'unsupervised' });
    registry.add(composite('outer', 'mid'));
    agent('root', [0], { tools: ['outer'], ...rootPolicy });
  },
  'handoff-of-handoff': ({ agent }, rootPolicy) => {
    agent('third', [0], { tools: ['pay'], mode: 'unsupervised' });
    agent('second', [0], { handoffs: ['third'] });
    agent('root', [0], { handoffs: ['second'], ...rootPolicy });
  },
};

/** @returns {import('../runner.mjs').Case[]} */
function depthCases() {
  return Object.entries(CALL_PATHS).flatMap(([name, build]) =>
    ['ask-star', 'ask-named', 'blocked-star', 'blocked-named', 'own-ask'].map((how) => ({
      id: `approvals.depth.${name}.${how}`,
      run: async () => {
        const planned = await createPlannedHost();
        const [policy, where] = how.split('-');
        planned.tool('pay', how === 'own-ask' ? { policy: { approval: 'ask' } } : {});
        build(planned, how === 'own-ask' ? {} : { approvals: { [where === 'star' ? '*' : 'pay']: policy } });
        if (policy !== 'blocked') return assertApprovedAlongPath(planned);
        const result = await planned.run('root');
        expect(planned.ran.length === 0 && result.status !== 'paused', 'a blocked tool never to run', {
          ran: planned.ran,
          status: result.status,
        });
      },
    })),
  );
}

/**
 * Approves every request: with `*`, tools along the path may require approval too. `pay` never runs before its own
 * approval.
 * @param {any} planned
 */
async function assertApprovedAlongPath({ host, ran, run }) {
  let result = await run('root');
  const approvedTools = [];
  for (let n = 0; n < 8 && result.status === 'paused'; n++) {
    for (const { id, tool } of await host.archive.approvals('s')) {
      expect(ran.length === 0, 'no tool to run before its approval', { approvedTools, ran });
      approvedTools.push(tool);
      await host.answer({ id, approved: true, by: 'ada' });
    }
    result = await host.resume(result.turnId);
  }
  expect(approvedTools.includes('pay') && ran.length === 1, 'pay to require approval and to run once', {
    approvedTools,
    ran,
    status: result.status,
  });
}

/** Tools that require approval by default. @returns {import('../runner.mjs').Case[]} */
function defaultCases() {
  /**
   * @type {Record<string, [approvals: object | undefined, parentApprovals: object | undefined, isRequired: boolean]>}
   */
  const table = {
    alone: [undefined, undefined, true],
    'star-allows': [{ '*': 'always_allow' }, undefined, true],
    'named-allows': [{ pay: 'always_allow' }, undefined, false],
    'agent-above-allows': [undefined, { '*': 'always_allow', pay: 'always_allow' }, true],
    'agent-above-asks': [{ pay: 'always_allow' }, { '*': 'ask' }, true],
    'agent-above-asks-by-name': [{ pay: 'always_allow' }, { pay: 'ask' }, true],
    'star-asks-named-allows': [{ '*': 'ask', pay: 'always_allow' }, undefined, false],
    'agent-above-asks-about-agent': [{ pay: 'always_allow' }, { helper: 'ask' }, true],
  };
  return Object.entries(table).map(([name, [approvals, parentApprovals, isRequired]]) => ({
    id: `approvals.by-default.${name}`,
    run: async () => {
      const planned = await createPlannedHost();
      const { loopsTool } = await toolsLibrary();
      const { plans, rondo, ran } = planned;
      const schema = {
        '~standard': {
          version: 1,
          vendor: 'x',
          validate: (value) => ({ value }),
          jsonSchema: { input: () => ({ type: 'object' }), output: () => ({}) },
        },
      };
      const pay = loopsTool({
        name: 'pay',
        inputSchema: schema,
        requestApproval: () => 'Pay?',
        execute: () => ran.push('pay'),
      });
      plans.set('helper', [0]);
      plans.set('root', [0]);
      const model = (/** @type {string} */ id) => ({ id: 'plan', model: id });
      const helper = rondo.defineAgent({
        id: 'helper',
        model: model('helper'),
        tools: [pay],
        ...(approvals && { approvals }),
      });
      const loop =
        parentApprovals === undefined
          ? helper
          : rondo.defineAgent({ id: 'root', model: model('root'), tools: [helper], approvals: parentApprovals });
      const first = await planned.run(loop);
      expect(
        (first.status === 'paused') === isRequired && ran.length === (isRequired ? 0 : 1),
        isRequired ? 'an approval request' : 'the tool to run',
        { status: first.status, ran, error: first.error },
      );
    },
  }));
}

/** Loops in code below an agent that requires approval. @returns {import('../runner.mjs').Case[]} */
function bodyCases() {
  return ['star', 'named'].flatMap((how) =>
    ['effect', 'race'].map((kind) => ({
      id: `approvals.body.${how}.${kind}`,
      run: async () => {
        const planned = await createPlannedHost();
        const { rondo, ran, plans } = planned;
        const effect = {
          kind: 'wire',
          name: 'wire',
          input: {},
          safety: 'idempotent',
          perform: () => ({ n: ran.push('wire') }),
        };
        const body = {
          effect: (_, scope) => scope.effect(effect),
          race: (_, scope) =>
            scope.race([(branch) => branch.effect(effect), (branch) => branch.effect({ ...effect, name: 'w2' })]),
        }[kind];
        const code = rondo.defineLoop({ id: 'code', input: true, output: true, run: body });
        plans.set('root', [0]);
        const root = rondo.defineAgent({
          id: 'root',
          model: { id: 'plan', model: 'root' },
          tools: [code],
          approvals: { [how === 'star' ? '*' : 'code']: 'ask' },
        });
        const first = await planned.run(root);
        expect(first.status === 'paused' && ran.length === 0, 'the body to wait', { status: first.status, ran });
        const [approval] = await planned.host.archive.approvals('s');
        await planned.host.answer({ id: approval.id, approved: false, by: 'ada' });
        await planned.host.resume(first.turnId);
        expect(ran.length === 0, 'a denied body to perform no effect', ran);
      },
    })),
  );
}

/** A call that the model repeats after a denial requires another approval. @returns {import('../runner.mjs').Case[]} */
function repeatedCallCases() {
  return [2, 5].map((times) => ({
    id: `approvals.denied-and-called-again.${times}`,
    run: async () => {
      const planned = await createPlannedHost();
      planned.tool('pay');
      planned.agent(
        'root',
        Array.from({ length: times }, () => 0),
        { tools: ['pay'], approvals: { '*': 'ask' } },
      );
      let result = await planned.run('root');
      const ids = new Set();
      for (let n = 0; n < times; n++) {
        const [approval] = await planned.host.archive.approvals('s');
        expect(approval !== undefined && !ids.has(approval.id), 'another approval each time', [...ids]);
        ids.add(approval.id);
        await planned.host.answer({ id: approval.id, approved: false, by: 'ada' });
        result = await planned.host.resume(result.turnId);
      }
      expect(planned.ran.length === 0 && ids.size === times, 'nothing to run', planned.ran);
    },
  }));
}

export const cases = () => [...nameCases(), ...depthCases(), ...defaultCases(), ...bodyCases(), ...repeatedCallCases()];
