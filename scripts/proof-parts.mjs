// The parts of `npm run proof`. A step is a command line: a program for Node, or a run of vitest at full length.

/**
 * @typedef {object} Step
 * @property {readonly string[]} command The arguments of Node, or of vitest.
 * @property {'node' | 'vitest'} runner
 * @property {boolean} [newer] True if it runs on the newer Node.
 */
/** @typedef {{ readonly what: string, readonly steps: readonly Step[] }} Part */

/** @param {string} line @returns {Step} */
const program = (line) => ({ runner: 'node', command: line.split(' ') });

/** A run of the tests of these projects of vitest. @param {boolean} newer @param {string[]} projects @returns {Step} */
const tests = (newer, ...projects) => ({
  runner: 'vitest',
  command: projects.flatMap((project) => ['--project', project]),
  newer,
});

/**
 * Returns the parts, by name.
 * @param {number} seed The seed of every campaign and attack.
 * @returns {Readonly<Record<string, Part>>}
 */
export function proofParts(seed) {
  const campaign = (/** @type {string} */ line) => program(`spec/campaigns/${line} --seed ${seed}`);
  return {
    twins: { what: 'every broken twin', steps: [tests(false, 'twins')] },
    tests: {
      what: 'every other test, with full repetitions',
      steps: [tests(false, 'in-process', 'isolated', 'alone'), tests(false, 'process', 'proof')],
    },
    newer: {
      what: 'the same on the newer Node',
      steps: [tests(true, 'twins'), tests(true, 'in-process', 'isolated', 'alone'), tests(true, 'process')],
    },
    kills: {
      what: 'processes that are killed, stopped and interrupted',
      steps: [
        campaign('processes.mjs --kills 150 --mode mixed'),
        campaign('same-key.mjs --rounds 30'),
        campaign('effects-and-receipts.mjs --kills 300'),
        campaign('closing.mjs --rounds 100'),
        campaign('rolling-restarts.mjs --restarts 40'),
        campaign('wake.mjs --rounds 5'),
        campaign('worker-kills.mjs --turns 300'),
        campaign('beside-a-server.mjs'),
      ],
    },
    authority: {
      what: 'budgets, hostile models and hostile clones',
      steps: [
        campaign('budgets.mjs --runs 400'),
        campaign('hostile-model.mjs --turns 10000'),
        campaign('clones.mjs --clones 20'),
      ],
    },
    hosted: {
      what: 'hosted loops: kills, a crash at every write, signals, a fleet, the real clock',
      steps: [
        campaign('hosted-kills.mjs --kills 200'),
        campaign('hosted-kills.mjs --mode writes --every 3'),
        campaign('hosted-signals.mjs --deliveries 2000'),
        program('spec/campaigns/hosted-fleet.mjs --loops 300'),
        program('spec/campaigns/hosted-real-clock.mjs --seconds 60'),
      ],
    },
    attacks: {
      what: 'attacks on ownership, authority and confinement; of the last, the quarter that the seed selects',
      steps: [
        program(`spec/attacks/ownership.mjs --seed ${seed}`),
        program(`spec/attacks/authority.mjs --seed ${seed} --lanes 2`),
        program(`spec/attacks/confinement.mjs --seed ${seed} --part ${(seed % 4) + 1}/4`),
      ],
    },
  };
}
