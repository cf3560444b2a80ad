// What is asked about: policies by name and for all, at every depth, with odd names, modes, and bodies in code.

import { expect, hostOf, outcome, rondoLibrary, toolsLibrary } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const any = { name: 'n', version: '1.0.0', inputSchema: true, outputSchema: true };
const step = (/** @type {string} */ loopId) => ({ loopId, inputMapping: '$.input' });
const composite = (/** @type {string} */ id, /** @type {string[]} */ ...loops) => ({
  ...any,
  id,
  kind: 'composite',
  composite: { steps: loops.map(step) },
});

/** A host whose agents call what they are told; `ran` counts what got through. */
async function staged() {
  const ran = /** @type {string[]} */ ([]);
  const rondo = await rondoLibrary();
  const act = {
    scheme: 'act',
    unavailableReason: () => undefined,
    approvalDescriber: () => undefined,
    targetResolver: () => undefined,
    open: async (/** @type {string} */ target) => () => {
      ran.push(target);
      return { ran: target };
    },
  };
  const implementations = new Map([['act', act]]);
  const registry = new rondo.Registry(implementations);
  const plans = new Map();
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const modelOf = (/** @type {string} */ name) => ({
    specificationVersion: 'v3',
    provider: 'p',
    modelId: name,
    supportedUrls: {},
    doGenerate: async ({ tools = [] }) => {
      const plan = plans.get(name);
      const call = plan?.shift();
      const known = tools.map((/** @type {any} */ tool) => tool.name);
      const toolName = typeof call === 'number' ? known[call] : call;
      const content =
        call === undefined
          ? [{ type: 'text', text: 'done' }]
          : [{ type: 'tool-call', toolCallId: `c${plan.length}`, toolName, input: '{"prompt":"x"}' }];
      const reason = call === undefined ? 'stop' : 'tool-calls';
      return { content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
    },
  });
  const providers = new Map([['plan', { id: 'plan', defaultModel: 'm', open: async ({ model }) => modelOf(model) }]]);
  const { host } = await hostOf({ registry, implementations, providers });
  const tool = (/** @type {string} */ id, more = {}) =>
    registry.add({ ...any, id, kind: 'tool', tool: { implementation: `act:${id}` }, ...more });
  const agent = (/** @type {string} */ id, /** @type {(string | number)[]} */ plan, more = {}) => {
    plans.set(id, [...plan]);
    return registry.add({
      ...any,
      id,
      kind: 'composite',
      composite: { agent: { backend: { id: 'plan', model: id }, tools: [], ...more } },
    });
  };
  const go = (/** @type {any} */ loop) => host.run({ loop, input: { prompt: 'x' }, sessionId: 's' });
  return { host, registry, ran, tool, agent, go, plans, rondo };
}

/** It must wait before anything runs, run once when approved, and not at all when denied. @param {any} stage @param {any} loop @param {string} tool */
async function expectAsked({ host, ran, go }, loop, tool) {
  const paused = await go(loop);
  expect(paused.status === 'paused' && ran.length === 0, 'it to wait before anything runs', {
    status: paused.status,
    error: paused.error,
    ran,
  });
  const [asked, ...more] = await host.archive.approvals('s');
  expect(
    asked?.tool === tool && more.length === 0,
    `one approval of ${tool}`,
    [asked, ...more].map((one) => one?.tool),
  );
  await host.answer({ id: asked.id, approved: true, by: 'ada' });
  await host.resume(paused.turnId);
  expect(ran.length === 1, 'it to run once', ran);
}

const FIXED = [
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'then',
  'length',
  'always_allow',
];
const ODD = [
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

/** @returns {import('../authority.mjs').Case[]} */
function names() {
  const all = [...FIXED, ...ODD].flatMap((id) =>
    ['star', 'named'].map((how) => ({
      id: `approvals.name.${how}.${id.length > 50 ? 'long' : id.replaceAll(' ', '+')}`,
      run: async () => {
        const stage = await staged();
        stage.tool(id);
        stage.agent('root', [0], { tools: [id], approvals: { [how === 'star' ? '*' : id]: 'ask' } });
        await expectAsked(stage, 'root', id);
      },
    })),
  );
  const collisions = [
    ['pay/now', 'pay_2F_now'],
    ['größe', 'gr_F6__DF_e'],
  ].map(([one, other]) => ({
    id: `approvals.name.collides.${one}`,
    run: async () => {
      const stage = await staged();
      stage.tool(one);
      stage.tool(other);
      const added = await outcome(
        (async () => {
          stage.agent('root', [one === undefined ? 0 : 1], {
            tools: [one, other],
            approvals: { [/** @type {string} */ (one)]: 'ask' },
          });
          return stage.go('root');
        })(),
      );
      const refused =
        added.code === 'DEFINITION_INVALID' || /** @type {any} */ (added.ok)?.error?.code === 'DEFINITION_INVALID';
      expect(refused && stage.ran.length === 0, 'two tools of one name to be refused', added);
    },
  }));
  const unknown = ['__proto__', 'Pay', 'pay ', 'p*', 'pay.*', 'AGENT.pay', 'pay@1.0.0'].map((name) => ({
    id: `approvals.name.unknown.${name.replaceAll(' ', '+')}`,
    run: async () => {
      const stage = await staged();
      stage.tool('pay');
      const approvals = JSON.parse(`{${JSON.stringify(name)}: "ask"}`);
      const added = await outcome(
        (async () => {
          stage.agent('root', [0], { tools: ['pay'], approvals });
          return stage.go('root');
        })(),
      );
      const code = added.code ?? /** @type {any} */ (added.ok)?.error?.code;
      expect(code === 'DEFINITION_INVALID' && stage.ran.length === 0, 'a name that guards nothing to be refused', {
        code,
        ran: stage.ran,
      });
    },
  }));
  return [...all, ...collisions, ...unknown];
}

/** Ways from the root to the tool; the guard stands at the root. @type {Record<string, (stage: any, guard: object) => void>} */
const WAYS = {
  direct: ({ agent }, guard) => agent('root', [0], { tools: ['pay'], ...guard }),
  'sub-agent': ({ agent }, guard) => {
    agent('helper', [0], { tools: ['pay'] });
    agent('root', [0], { tools: ['helper'], ...guard });
  },
  'sub-agent-allows': ({ agent }, guard) => {
    agent('helper', [0], { tools: ['pay'], approvals: { pay: 'always_allow', '*': 'always_allow' } });
    agent('root', [0], { tools: ['helper'], ...guard });
  },
  'sub-agent-unsupervised': ({ agent }, guard) => {
    agent('helper', [0], { tools: ['pay'], mode: 'unsupervised' });
    agent('root', [0], { tools: ['helper'], ...guard });
  },
  handoff: ({ agent }, guard) => {
    agent('helper', [0], { tools: ['pay'] });
    agent('root', [0], { handoffs: ['helper'], ...guard });
  },
  'handoff-unsupervised': ({ agent }, guard) => {
    agent('helper', [0], { tools: ['pay'], mode: 'unsupervised', approvals: { pay: 'always_allow' } });
    agent('root', [0], { handoffs: ['helper'], ...guard });
  },
  composite: ({ agent, registry }, guard) => {
    registry.add(composite('wrap', 'pay'));
    agent('root', [0], { tools: ['wrap'], ...guard });
  },
  'composite-of-agents': ({ agent, registry }, guard) => {
    agent('helper', [0], { tools: ['pay'], approvals: { '*': 'always_allow' } });
    registry.add(composite('inner', 'helper'));
    agent('mid', [0], { tools: ['inner'], mode: 'unsupervised' });
    registry.add(composite('outer', 'mid'));
    agent('root', [0], { tools: ['outer'], ...guard });
  },
  'handoff-of-handoff': ({ agent }, guard) => {
    agent('third', [0], { tools: ['pay'], mode: 'unsupervised' });
    agent('second', [0], { handoffs: ['third'] });
    agent('root', [0], { handoffs: ['second'], ...guard });
  },
};

/** @returns {import('../authority.mjs').Case[]} */
function depths() {
  return Object.entries(WAYS).flatMap(([name, build]) =>
    ['ask-star', 'ask-named', 'blocked-star', 'blocked-named', 'own-ask'].map((how) => ({
      id: `approvals.depth.${name}.${how}`,
      run: async () => {
        const stage = await staged();
        const [policy, where] = how.split('-');
        stage.tool('pay', how === 'own-ask' ? { policy: { approval: 'ask' } } : {});
        build(stage, how === 'own-ask' ? {} : { approvals: { [where === 'star' ? '*' : 'pay']: policy } });
        if (policy !== 'blocked') return expectAskedAlong(stage);
        const result = await stage.go('root');
        expect(stage.ran.length === 0 && result.status !== 'paused', 'what is blocked never to run', {
          ran: stage.ran,
          status: result.status,
        });
      },
    })),
  );
}

/** With `*` every tool on the way may be asked about; whatever is asked, `pay` never runs before its own approval. @param {any} stage */
async function expectAskedAlong({ host, ran, go }) {
  let result = await go('root');
  const asked = [];
  for (let n = 0; n < 8 && result.status === 'paused'; n++) {
    for (const { id, tool } of await host.archive.approvals('s')) {
      expect(ran.length === 0, 'nothing to run before it is approved', { asked, ran });
      asked.push(tool);
      await host.answer({ id, approved: true, by: 'ada' });
    }
    result = await host.resume(result.turnId);
  }
  expect(asked.includes('pay') && ran.length === 1, 'pay to be asked about, and to run once', {
    asked,
    ran,
    status: result.status,
  });
}

/** Tools that say themselves what to ask. @returns {import('../authority.mjs').Case[]} */
function byDefault() {
  /** @type {Record<string, [approvals: object | undefined, above: object | undefined, asks: boolean]>} */
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
  return Object.entries(table).map(([name, [approvals, above, asks]]) => ({
    id: `approvals.by-default.${name}`,
    run: async () => {
      const stage = await staged();
      const { loopsTool } = await toolsLibrary();
      const { plans, rondo, ran } = stage;
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
        above === undefined
          ? helper
          : rondo.defineAgent({ id: 'root', model: model('root'), tools: [helper], approvals: above });
      const first = await stage.go(loop);
      expect(
        (first.status === 'paused') === asks && ran.length === (asks ? 0 : 1),
        asks ? 'it to be asked about' : 'it to run',
        { status: first.status, ran, error: first.error },
      );
    },
  }));
}

/** Bodies in code below an agent that asks. @returns {import('../authority.mjs').Case[]} */
function bodies() {
  return ['star', 'named'].flatMap((how) =>
    ['effect', 'race'].map((what) => ({
      id: `approvals.body.${how}.${what}`,
      run: async () => {
        const stage = await staged();
        const { rondo, ran, plans } = stage;
        const act = {
          kind: 'wire',
          name: 'wire',
          input: {},
          safety: 'idempotent',
          perform: () => ({ n: ran.push('wire') }),
        };
        const body = {
          effect: (_, scope) => scope.effect(act),
          race: (_, scope) =>
            scope.race([(branch) => branch.effect(act), (branch) => branch.effect({ ...act, name: 'w2' })]),
        }[what];
        const code = rondo.defineLoop({ id: 'code', input: true, output: true, body });
        plans.set('root', [0]);
        const root = rondo.defineAgent({
          id: 'root',
          model: { id: 'plan', model: 'root' },
          tools: [code],
          approvals: { [how === 'star' ? '*' : 'code']: 'ask' },
        });
        const first = await stage.go(root);
        expect(first.status === 'paused' && ran.length === 0, 'the body to wait', { status: first.status, ran });
        const [asked] = await stage.host.archive.approvals('s');
        await stage.host.answer({ id: asked.id, approved: false, by: 'ada' });
        await stage.host.resume(first.turnId);
        expect(ran.length === 0, 'a body that was denied to do nothing', ran);
      },
    })),
  );
}

/** Denied, and called again by the model: it is another approval. @returns {import('../authority.mjs').Case[]} */
function again() {
  return [2, 5].map((times) => ({
    id: `approvals.denied-and-called-again.${times}`,
    run: async () => {
      const stage = await staged();
      stage.tool('pay');
      stage.agent(
        'root',
        Array.from({ length: times }, () => 0),
        { tools: ['pay'], approvals: { '*': 'ask' } },
      );
      let result = await stage.go('root');
      const ids = new Set();
      for (let n = 0; n < times; n++) {
        const [asked] = await stage.host.archive.approvals('s');
        expect(asked !== undefined && !ids.has(asked.id), 'another approval each time', [...ids]);
        ids.add(asked.id);
        await stage.host.answer({ id: asked.id, approved: false, by: 'ada' });
        result = await stage.host.resume(result.turnId);
      }
      expect(stage.ran.length === 0 && ids.size === times, 'nothing to run', stage.ran);
    },
  }));
}

export const cases = () => [...names(), ...depths(), ...byDefault(), ...bodies(), ...again()];
