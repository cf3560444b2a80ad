// The client of a campaign: starts turns and continues each until it ends, through any worker that is ready.

import { setTimeout as sleep } from 'node:timers/promises';
import { randomPlan } from './plans.mjs';
import { effectValue } from './sink.mjs';

/** @typedef {import('./worker-process.mjs').WorkerProcess} WorkerProcess */
/** @typedef {import('./sink.mjs').StepId} StepId */
/** @typedef {{ readonly kind: string, readonly key: string, readonly id?: string, readonly input?: StepId }} Pending */
/**
 * The report of a worker about a turn.
 * @typedef {object} TurnReport
 * @property {string} turnId
 * @property {string} sessionId
 * @property {string} status
 * @property {unknown} [output]
 * @property {{ readonly code: string, readonly message: string }} [error]
 * @property {readonly Pending[]} [pending]
 */
/**
 * @template T
 * @typedef {import('./worker-process.mjs').Outcome<T>} Outcome
 */
/** @typedef {{ readonly name: string, readonly outcome: Outcome<unknown> }} NamedOutcome */
/**
 * @typedef {object} Turn
 * @property {string} name The name of the turn, also its session and its key.
 * @property {string} loop
 * @property {import('./plans.mjs').Plan} plan
 * @property {string} turnId Empty until a worker reports it.
 * @property {boolean} finished
 * @property {TurnReport[]} ends The reports of its end.
 * @property {NamedOutcome[]} cancels Named by the reason.
 * @property {(NamedOutcome & { approved: boolean, id: string })[]} answers Named by the approver.
 * @property {NamedOutcome[]} resolutions Named by the resolver.
 * @property {{ readonly at: number, readonly text: string }[]} unnamedFaults Faults that did not name the turn.
 */

/** The time limit for a turn that is listed as running while no operation runs it. */
const STALE_MS = 10_000;
/** The same limit in modes that block or stop workers. */
const STALE_PAUSED_MS = 25_000;

/** Runs turns through the workers and records the outcomes. */
export class Client {
  /** @type {Turn[]} */
  turns = [];
  #fleet;
  #sink;
  #random;
  #log;
  #next = 0;

  /** @param {import('./fleet.mjs').Fleet} fleet @param {() => number} random */
  constructor(fleet, random) {
    this.#fleet = fleet;
    this.#sink = fleet.options.sink;
    this.#log = fleet.options.log;
    this.#random = random;
  }

  /** Runs one turn after another as long as `shouldContinue` returns true. @param {() => boolean} shouldContinue */
  async lane(shouldContinue) {
    while (shouldContinue() && !this.#log.isFull) {
      await this.#finish(this.#newTurn());
      await sleep(this.#random() * 500);
    }
  }

  /** Creates a turn with a random plan. @returns {Turn} */
  #newTurn() {
    const name = `turn-${++this.#next}`;
    const { loop, plan } = randomPlan(this.#random, name);
    const empty = { finished: false, ends: [], cancels: [], answers: [], resolutions: [], unnamedFaults: [] };
    /** @type {Turn} */
    const turn = { name, loop, plan, turnId: '', ...empty };
    this.turns.push(turn);
    return turn;
  }

  /** Runs a turn until it ends, and cancels it in 12% of the cases. @param {Turn} turn */
  async #finish(turn) {
    const cancelling = this.#random() < 0.12 ? this.#cancel(turn) : undefined;
    await this.#drive(turn, 'run');
    while (!turn.finished && !this.#log.isFull) await this.#continueTurn(turn);
    await cancelling;
  }

  /**
   * Runs or resumes a turn, sometimes through two workers at once.
   * @param {Turn} turn @param {'run' | 'resume'} op
   */
  async #drive(turn, op) {
    const times = this.#random() < 0.1 ? 2 : 1;
    const reports = await Promise.all(Array.from({ length: times }, () => this.#driveOnce(turn, op)));
    const paused = reports.find((report) => report?.status === 'paused');
    if (!turn.finished && paused !== undefined) await this.#settlePending(turn, paused.pending ?? []);
  }

  /**
   * Runs or resumes a turn through one worker.
   * @param {Turn} turn @param {'run' | 'resume'} op @returns {Promise<TurnReport | undefined>}
   */
  async #driveOnce(turn, op) {
    const { name, loop, plan, turnId } = turn;
    const args = op === 'run' ? { loop, input: plan, sessionId: name, key: name } : { turnId };
    /** @type {Outcome<TurnReport>} */
    const outcome = await this.#fleet.request(await this.#fleet.pick(), op, args, name);
    if (outcome.kind === 'refused') this.#log.violation(`${op} of ${name} was refused: ${outcome.error.message}`);
    if (outcome.kind === 'fault') this.#recordFault(turn, op, outcome.error);
    if (outcome.kind !== 'ok') return undefined;
    this.#identify(turn, outcome.value.turnId);
    if (outcome.value.status !== 'paused') this.#end(turn, outcome.value);
    return outcome.value;
  }

  /**
   * Reads the id of the turn from a fault.
   * @param {Turn} turn @param {string} op @param {import('./worker-process.mjs').Failure} error
   */
  #recordFault(turn, op, { code, message, data = {} }) {
    const { turnId, sessionId } = data;
    if (typeof turnId === 'string' && sessionId === turn.name) this.#identify(turn, turnId);
    else turn.unnamedFaults.push({ at: Date.now(), text: `${op} ${code}: ${message} ${JSON.stringify(data)}` });
  }

  /** Records the id of a turn, which must not change. @param {Turn} turn @param {string} turnId */
  #identify(turn, turnId) {
    if (turn.turnId === '') turn.turnId = turnId;
    if (turn.turnId !== turnId) this.#log.violation(`${turn.name} has two ids: ${turn.turnId} and ${turnId}`);
  }

  /** Records the end of a turn. @param {Turn} turn @param {TurnReport} report */
  #end(turn, report) {
    turn.finished = true;
    turn.ends.push(report);
  }

  /** Reads the status of a turn, as a client that lost its worker does, and continues the turn. @param {Turn} turn */
  async #continueTurn(turn) {
    const since = Date.now();
    const limitMs = this.#fleet.options.pausesWorkers ? STALE_PAUSED_MS : STALE_MS;
    for (;;) {
      const listed = await this.#listing(turn);
      if (listed === undefined) return this.#drive(turn, 'run');
      this.#identify(turn, listed.turnId);
      if (listed.status === 'interrupted' || listed.status === 'paused')
        return this.#drive(turn, this.#random() < 0.75 ? 'resume' : 'run');
      if (listed.status !== 'running') return this.#readEnd(turn);
      if (Date.now() - since > limitMs) {
        this.#log.violation(`${turn.name} is listed as running for ${limitMs} ms, and nothing runs it`);
        return this.#drive(turn, 'resume');
      }
      await sleep(50);
    }
  }

  /**
   * Returns the turn as the archive lists it.
   * @param {Turn} turn @returns {Promise<import('./fleet.mjs').TurnListing | undefined>}
   */
  async #listing(turn) {
    while (!this.#log.isFull) {
      /** @type {Outcome<import('./fleet.mjs').TurnListing[]>} */
      const outcome = await this.#fleet.request(await this.#fleet.pick(), 'turns', { session: turn.name });
      if (outcome.kind === 'ok') return outcome.value[0];
      if (outcome.kind === 'refused') this.#log.violation(`turns of ${turn.name}: ${outcome.error.message}`);
      await sleep(20);
    }
    return undefined;
  }

  /** Reads the result of a turn that has ended. @param {Turn} turn */
  async #readEnd(turn) {
    /** @type {Outcome<TurnReport | undefined>} */
    const outcome = await this.#fleet.request(await this.#fleet.pick(), 'result', { turnId: turn.turnId });
    if (outcome.kind === 'ok' && outcome.value !== undefined) this.#end(turn, outcome.value);
    else if (outcome.kind === 'ok') this.#log.violation(`${turn.name} has ended and has no result`);
    else if (outcome.kind === 'refused') this.#log.violation(`result of ${turn.name}: ${outcome.error.message}`);
  }

  /**
   * Resolves the effects and answers the approvals that a paused turn waits for.
   * @param {Turn} turn @param {readonly Pending[]} pending
   */
  async #settlePending(turn, pending) {
    for (const item of pending) {
      if (item.kind === 'doubt') await this.#resolve(turn, item);
      else if (item.kind === 'approval') await this.#answer(turn, item);
      else this.#log.violation(`${turn.name} waits for ${JSON.stringify(item)}`);
    }
  }

  /**
   * Resolves an effect in doubt, depending on whether the sink received it.
   * @param {Turn} turn @param {Pending} item
   */
  async #resolve(turn, { key, input }) {
    // The sink has received the effects of a killed worker by now. An effect of a running worker may be in flight.
    await sleep(150);
    const stepId = { turn: input?.turn ?? '', step: input?.step ?? '' };
    const [received] = this.#sink.attemptsOf(stepId);
    const by = `auditor-${turn.resolutions.length}`;
    const resolution =
      received === undefined ? { resolution: 'retry' } : { resolution: 'supply', value: effectValue(stepId) };
    const outcome = await this.#fleet.request(await this.#fleet.pick(), 'resolve', { key, by, ...resolution });
    turn.resolutions.push({ name: by, outcome });
  }

  /**
   * Answers an approval. In 15% of the cases it approves and denies at the same time.
   * @param {Turn} turn @param {Pending} item
   */
  async #answer(turn, { id = '' }) {
    if (this.#random() < 0.3) await this.#checkListed(turn, id);
    const answers = this.#random() < 0.15 ? [true, false] : [true];
    const sent = answers.map(async (approved) => {
      const by = `person-${turn.answers.length}-${approved ? 'yes' : 'no'}-${Math.floor(this.#random() * 1e9)}`;
      const args = { approval: id, approved, by };
      const outcome = await this.#fleet.request(await this.#fleet.pick(), 'answer', args);
      turn.answers.push({ name: by, approved, id, outcome });
    });
    await Promise.all(sent);
  }

  /** Checks that every process lists an approval that a turn waits for. @param {Turn} turn @param {string} id */
  async #checkListed(turn, id) {
    if (turn.cancels.length > 0 || turn.answers.some((answer) => answer.id === id)) return;
    /** @type {Outcome<{ id: string }[]>} */
    const outcome = await this.#fleet.request(await this.#fleet.pick(), 'approvals', { session: turn.name });
    if (outcome.kind !== 'ok' || outcome.value.some((approval) => approval.id === id) || turn.cancels.length > 0)
      return;
    const listed = await this.#listing(turn);
    if (listed?.status === 'paused') this.#log.violation(`${turn.name} waits for ${id}, which is not listed`);
  }

  /** Cancels a turn at a random moment. @param {Turn} turn */
  async #cancel(turn) {
    await sleep(this.#random() ** 2 * 1500);
    for (let tries = 0; tries < 4 && !turn.finished; tries++) {
      const listed = await this.#listing(turn);
      if (listed === undefined) {
        await sleep(50);
        continue;
      }
      const reason = `cancel ${tries} of ${turn.name}`;
      const worker = await this.#fleet.pick();
      /** @type {{ name: string, outcome: Outcome<unknown> }} */
      const cancel = { name: reason, outcome: { kind: 'lost' } };
      turn.cancels.push(cancel);
      cancel.outcome = await this.#fleet.request(worker, 'cancel', { turnId: listed.turnId, reason }, turn.name);
      if (cancel.outcome.kind === 'ok' || cancel.outcome.kind === 'refused') return;
    }
  }
}
