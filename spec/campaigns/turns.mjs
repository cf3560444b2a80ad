// The client of a campaign: starts turns and sees each to its end, through whichever worker is alive.

import { setTimeout as sleep } from 'node:timers/promises';
import { randomPlan } from './plans.mjs';
import { effectValue } from './sink.mjs';

/** @typedef {import('./worker-process.mjs').WorkerProcess} WorkerProcess */
/** @typedef {{ readonly kind: string, readonly key: string, readonly id?: string, readonly input?: import('./sink.mjs').Place }} Pending */
/**
 * @typedef {object} Told what a worker reports of a turn
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
/** @typedef {{ readonly name: string, readonly outcome: Outcome<unknown> }} Attempted */
/**
 * @typedef {object} Turn
 * @property {string} name also its session and its key
 * @property {string} loop
 * @property {import('./plans.mjs').Plan} plan
 * @property {string} turnId empty until a worker has named it
 * @property {boolean} finished
 * @property {Told[]} ends what was reported of its end
 * @property {Attempted[]} cancels by reason
 * @property {(Attempted & { approved: boolean, id: string })[]} answers by who gave them
 * @property {Attempted[]} decisions by who made them
 * @property {{ readonly at: number, readonly text: string }[]} anonymous faults that did not name the turn
 */

/** How long a turn may be reported as running while no operation for it is under way. */
const STALE_MS = 10_000;
const STALE_PAUSED_MS = 25_000;

export class Client {
  /** @type {Turn[]} */
  turns = [];
  #fleet;
  #sink;
  #random;
  #record;
  #next = 0;

  /** @param {import('./fleet.mjs').Fleet} fleet @param {() => number} random */
  constructor(fleet, random) {
    this.#fleet = fleet;
    this.#sink = fleet.options.sink;
    this.#record = fleet.options.record;
    this.#random = random;
  }

  /** Starts one turn after another until it is told to end. @param {() => boolean} goesOn */
  async lane(goesOn) {
    while (goesOn() && !this.#record.spent) {
      await this.#finish(this.#newTurn());
      await sleep(this.#random() * 500);
    }
  }

  /** @returns {Turn} */
  #newTurn() {
    const name = `turn-${++this.#next}`;
    const { loop, plan } = randomPlan(this.#random, name);
    const empty = { finished: false, ends: [], cancels: [], answers: [], decisions: [], anonymous: [] };
    /** @type {Turn} */
    const turn = { name, loop, plan, turnId: '', ...empty };
    this.turns.push(turn);
    return turn;
  }

  /** @param {Turn} turn */
  async #finish(turn) {
    const cancelling = this.#random() < 0.12 ? this.#cancel(turn) : undefined;
    await this.#drive(turn, 'run');
    while (!turn.finished && !this.#record.spent) await this.#goOn(turn);
    await cancelling;
  }

  /**
   * Runs or resumes a turn, sometimes through two workers at once.
   * @param {Turn} turn @param {'run' | 'resume'} op
   */
  async #drive(turn, op) {
    const times = this.#random() < 0.1 ? 2 : 1;
    const told = await Promise.all(Array.from({ length: times }, () => this.#driveOnce(turn, op)));
    const paused = told.find((one) => one?.status === 'paused');
    if (!turn.finished && paused !== undefined) await this.#settle(turn, paused.pending ?? []);
  }

  /** @param {Turn} turn @param {'run' | 'resume'} op @returns {Promise<Told | undefined>} */
  async #driveOnce(turn, op) {
    const { name, loop, plan, turnId } = turn;
    const args = op === 'run' ? { loop, input: plan, sessionId: name, key: name } : { turnId };
    /** @type {Outcome<Told>} */
    const outcome = await this.#fleet.ask(await this.#fleet.pick(), op, args, name);
    if (outcome.kind === 'refused') this.#record.violation(`${op} of ${name} was refused: ${outcome.error.message}`);
    if (outcome.kind === 'fault') this.#noteFault(turn, op, outcome.error);
    if (outcome.kind !== 'ok') return undefined;
    this.#identify(turn, outcome.value.turnId);
    if (outcome.value.status !== 'paused') this.#end(turn, outcome.value);
    return outcome.value;
  }

  /** @param {Turn} turn @param {string} op @param {import('./worker-process.mjs').Failure} error */
  #noteFault(turn, op, { code, message, data = {} }) {
    const { turnId, sessionId } = data;
    if (typeof turnId === 'string' && sessionId === turn.name) this.#identify(turn, turnId);
    else turn.anonymous.push({ at: Date.now(), text: `${op} ${code}: ${message} ${JSON.stringify(data)}` });
  }

  /** @param {Turn} turn @param {string} turnId */
  #identify(turn, turnId) {
    if (turn.turnId === '') turn.turnId = turnId;
    if (turn.turnId !== turnId) this.#record.violation(`${turn.name} is ${turn.turnId} and also ${turnId}`);
  }

  /** @param {Turn} turn @param {Told} told */
  #end(turn, told) {
    turn.finished = true;
    turn.ends.push(told);
  }

  /** Finds out how a turn stands, as a client does that lost its worker, and goes on with it. @param {Turn} turn */
  async #goOn(turn) {
    const since = Date.now();
    const patience = this.#fleet.options.pausing ? STALE_PAUSED_MS : STALE_MS;
    for (;;) {
      const known = await this.#look(turn);
      if (known === undefined) return this.#drive(turn, 'run');
      this.#identify(turn, known.turnId);
      if (known.status === 'interrupted' || known.status === 'paused')
        return this.#drive(turn, this.#random() < 0.75 ? 'resume' : 'run');
      if (known.status !== 'running') return this.#readEnd(turn);
      if (Date.now() - since > patience) {
        this.#record.violation(`${turn.name} is reported as running for ${patience} ms, and nothing runs it`);
        return this.#drive(turn, 'resume');
      }
      await sleep(50);
    }
  }

  /** The turn as the archive lists it. @param {Turn} turn @returns {Promise<import('./fleet.mjs').Listed | undefined>} */
  async #look(turn) {
    while (!this.#record.spent) {
      /** @type {Outcome<import('./fleet.mjs').Listed[]>} */
      const outcome = await this.#fleet.ask(await this.#fleet.pick(), 'turns', { session: turn.name });
      if (outcome.kind === 'ok') return outcome.value[0];
      if (outcome.kind === 'refused') this.#record.violation(`turns of ${turn.name}: ${outcome.error.message}`);
      await sleep(20);
    }
    return undefined;
  }

  /** @param {Turn} turn */
  async #readEnd(turn) {
    /** @type {Outcome<Told | undefined>} */
    const outcome = await this.#fleet.ask(await this.#fleet.pick(), 'result', { turnId: turn.turnId });
    if (outcome.kind === 'ok' && outcome.value !== undefined) this.#end(turn, outcome.value);
    else if (outcome.kind === 'ok') this.#record.violation(`${turn.name} has ended and has no result`);
    else if (outcome.kind === 'refused') this.#record.violation(`result of ${turn.name}: ${outcome.error.message}`);
  }

  /** Does what a paused turn waits for. @param {Turn} turn @param {readonly Pending[]} pending */
  async #settle(turn, pending) {
    for (const item of pending) {
      if (item.kind === 'doubt') await this.#resolve(turn, item);
      else if (item.kind === 'approval') await this.#answer(turn, item);
      else this.#record.violation(`${turn.name} waits for ${JSON.stringify(item)}`);
    }
  }

  /** Resolves an effect in doubt by what the sink has seen. @param {Turn} turn @param {Pending} item */
  async #resolve(turn, { key, input }) {
    // An effect of a worker that was killed is known by now; one of a worker that lives may be on its way.
    await sleep(150);
    const place = { turn: input?.turn ?? '', step: input?.step ?? '' };
    const [happened] = this.#sink.seen(place);
    const by = `auditor-${turn.decisions.length}`;
    const what = happened === undefined ? { decision: 'retry' } : { decision: 'supply', value: effectValue(place) };
    const outcome = await this.#fleet.ask(await this.#fleet.pick(), 'decide', { key, by, ...what });
    turn.decisions.push({ name: by, outcome });
  }

  /** Answers an approval, sometimes with yes and no at once. @param {Turn} turn @param {Pending} item */
  async #answer(turn, { id = '' }) {
    if (this.#random() < 0.3) await this.#checkListed(turn, id);
    const answers = this.#random() < 0.15 ? [true, false] : [true];
    const given = answers.map(async (approved) => {
      const by = `person-${turn.answers.length}-${approved ? 'yes' : 'no'}-${Math.floor(this.#random() * 1e9)}`;
      const args = { approval: id, approved, by };
      const outcome = await this.#fleet.ask(await this.#fleet.pick(), 'answer', args);
      turn.answers.push({ name: by, approved, id, outcome });
    });
    await Promise.all(given);
  }

  /** An approval that a turn waits for is listed in every process. @param {Turn} turn @param {string} id */
  async #checkListed(turn, id) {
    if (turn.cancels.length > 0 || turn.answers.some((one) => one.id === id)) return;
    /** @type {Outcome<{ id: string }[]>} */
    const outcome = await this.#fleet.ask(await this.#fleet.pick(), 'approvals', { session: turn.name });
    if (outcome.kind !== 'ok' || outcome.value.some((one) => one.id === id) || turn.cancels.length > 0) return;
    const known = await this.#look(turn);
    if (known?.status === 'paused') this.#record.violation(`${turn.name} waits for ${id}, which is not listed`);
  }

  /** Cancels a turn at a random moment. @param {Turn} turn */
  async #cancel(turn) {
    await sleep(this.#random() ** 2 * 1500);
    for (let tries = 0; tries < 4 && !turn.finished; tries++) {
      const known = await this.#look(turn);
      if (known === undefined) {
        await sleep(50);
        continue;
      }
      const reason = `cancel ${tries} of ${turn.name}`;
      const worker = await this.#fleet.pick();
      /** @type {{ name: string, outcome: Outcome<unknown> }} */
      const attempted = { name: reason, outcome: { kind: 'lost' } };
      turn.cancels.push(attempted);
      attempted.outcome = await this.#fleet.ask(worker, 'cancel', { turnId: known.turnId, reason }, turn.name);
      if (attempted.outcome.kind === 'ok' || attempted.outcome.kind === 'refused') return;
    }
  }
}
