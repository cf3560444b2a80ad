/**
 * The details of a turn's calls, folded from its entries: input, output and error of each call, what it asked a model
 * and what the model replied, and its other effects. Values are untrusted: escape them before display.
 */
import { asNonNegativeInteger, ownProperty, ownText } from '../base/own-property.js';
import { expandLeaf } from '../journal/leaf-entries.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { isoTime } from './iso-time.js';
import { isKeyOfTurn } from './turns.js';

/** The tokens of model calls. */
export interface UsageDetails {
  /** The number of model calls, further attempts included. */
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** True if some of the tokens are estimates, because the model did not report them. */
  readonly isEstimated?: true;
}

/** One attempt at a model call. */
export interface ModelCallDetails {
  /** The key of the attempt. */
  readonly key: string;
  readonly provider: string;
  readonly model: string;
  readonly system?: string;
  /** The rendered prompt; absent for an agent, whose messages are its input, its replies and the results of its calls. */
  readonly prompt?: string;
  /** Of an agent: the number of messages that were sent. */
  readonly messages?: number;
  /** The reply, as the journal has it: text, reasoning, tool calls, finish reason and tokens. */
  readonly reply?: Json;
  readonly error?: ErrorRecord;
  /** True if the reply comes from the cache. */
  readonly isCached?: true;
}

/** An effect that is neither a model call nor that of a tool. */
export interface EffectDetails {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly input?: Json;
  readonly output?: Json;
  readonly error?: ErrorRecord;
}

/** One call of a turn. */
export interface CallDetails {
  readonly callId: string;
  /** The id of the call that made this one; absent for the root. */
  readonly parentCallId?: string;
  readonly loopId: string;
  readonly loopVersion: string;
  readonly status: 'running' | 'ok' | 'error';
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly input?: Json;
  readonly output?: Json;
  readonly error?: ErrorRecord;
  readonly modelCalls: readonly ModelCallDetails[];
  readonly effects: readonly EffectDetails[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface CallDraft extends Mutable<Omit<CallDetails, 'modelCalls' | 'effects'>> {
  readonly modelCalls: Mutable<ModelCallDetails>[];
  readonly effects: Mutable<EffectDetails>[];
}

/** Folds the entries of one turn into its calls. */
class CallDetailsBuilder {
  readonly calls = new Map<string, CallDraft>();
  private readonly modelCalls = new Map<string, Mutable<ModelCallDetails>>();
  private readonly effects = new Map<string, Mutable<EffectDetails>>();
  /** The effects of models with layers: the provider and model that they were opened with, by key. */
  private readonly layered = new Map<string, Json | undefined>();

  apply(entry: Entry): void {
    const parts = expandLeaf(entry);
    if (parts === undefined) this.applyEntry(entry);
    else for (const part of parts) this.applyEntry(part);
  }

  private applyEntry(entry: Entry): void {
    const { type, key, kind } = entry;
    if (type === 'call.started') this.startCall(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(entry);
    else if (type === 'effect.opened' && kind === 'model') this.layered.set(key, entry.value);
    else if (type === 'effect.requested') this.requestEffect(entry);
    else if (type === 'effect.returned' || type === 'effect.failed') this.endEffect(entry);
    else if (type === 'effect.settled') this.settleEffect(entry);
  }

  private startCall({ key, name = '', version = '', at, validationMs = 0, value, bodyKind }: Entry): void {
    const parent = this.callAround(key);
    // The model call of an agent is one of the model calls of the agent, like that of a prompt.
    if (bodyKind === 'model' && parent !== undefined) return;
    this.calls.set(key, {
      callId: key,
      ...(parent !== undefined && { parentCallId: parent.callId }),
      loopId: name,
      loopVersion: version,
      status: 'running',
      startedAt: isoTime(at - validationMs),
      ...(value !== undefined && { input: value }),
      modelCalls: [],
      effects: [],
    });
  }

  private endCall({ key, type, at, value, error }: Entry): void {
    const call = this.calls.get(key);
    if (call === undefined) return;
    call.status = type === 'call.completed' ? 'ok' : 'error';
    call.endedAt = isoTime(Math.max(at, Date.parse(call.startedAt)));
    if (error !== undefined) call.error = error;
    else if (type === 'call.completed') call.output = value ?? null;
  }

  private requestEffect({ key, kind = '', name = '', value }: Entry): void {
    const call = this.callAround(key);
    if (call === undefined || kind === 'gate') return;
    if (kind === 'model') this.addModelCall(call, key, value);
    // The effect of a tool has the input and the output of its call.
    else if (kind !== 'tool' || name !== call.loopId) {
      const effect = { key, kind, name, ...(value !== undefined && { input: value }) };
      call.effects.push(effect);
      this.effects.set(key, effect);
    }
  }

  private addModelCall(call: CallDraft, key: string, request: Json | undefined): void {
    const messages = asNonNegativeInteger(ownProperty(request, 'messages'));
    const [system, prompt] = [ownProperty(request, 'system'), ownProperty(request, 'prompt')];
    const modelCall: Mutable<ModelCallDetails> = {
      key,
      provider: ownText(request, 'backendId'),
      model: ownText(request, 'model'),
      ...(typeof system === 'string' && { system }),
      ...(typeof prompt === 'string' && { prompt }),
      ...(messages !== undefined && { messages }),
    };
    call.modelCalls.push(modelCall);
    this.modelCalls.set(key, modelCall);
  }

  private endEffect({ key, value, error }: Entry): void {
    const modelCall = this.modelCalls.get(key);
    const ended = modelCall ?? this.effects.get(key);
    if (ended === undefined) return;
    if (error !== undefined) ended.error = error;
    else if (modelCall !== undefined) modelCall.reply = value ?? null;
    else (ended as Mutable<EffectDetails>).output = value ?? null;
  }

  /** Adds the reply of a model call whose layers called no model: it comes from the cache. */
  private settleEffect({ key, value, error, attemptKey }: Entry): void {
    if (!this.layered.has(key) || attemptKey !== undefined || error !== undefined || value === undefined) return;
    const call = this.callAround(key);
    if (call === undefined || call.modelCalls.some((modelCall) => modelCall.key.startsWith(`${key}/`))) return;
    this.addModelCall(call, key, this.layered.get(key));
    Object.assign(this.modelCalls.get(key) ?? {}, { reply: value, isCached: true });
  }

  private callAround(key: string): CallDraft | undefined {
    for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) {
      const call = this.calls.get(key.slice(0, end));
      if (call !== undefined) return call;
    }
    return undefined;
  }
}

/** Returns the calls of a turn in the order in which they started. */
export function callDetailsOf(turnId: string, entries: Iterable<Entry>): readonly CallDetails[] {
  const builder = new CallDetailsBuilder();
  for (const entry of entries) if (isKeyOfTurn(entry.key, turnId)) builder.apply(entry);
  return [...builder.calls.values()];
}

/** Returns the tokens of all model calls; undefined if there is no model call. A cached reply costs nothing. */
export function usageOf(calls: Iterable<CallDetails>): UsageDetails | undefined {
  const usage: Mutable<UsageDetails> = { modelCalls: 0, inputTokens: 0, outputTokens: 0 };
  for (const { modelCalls } of calls)
    for (const modelCall of modelCalls) {
      if (modelCall.isCached === true) continue;
      usage.modelCalls += 1;
      const { inputTokens, outputTokens, isEstimated } = tokensOf(modelCall);
      usage.inputTokens += inputTokens;
      usage.outputTokens += outputTokens;
      if (isEstimated) usage.isEstimated = true;
    }
  return usage.modelCalls === 0 ? undefined : usage;
}

/** Returns the tokens of one model call: as reported, else as estimated, else 0. */
export function tokensOf({ reply }: ModelCallDetails): {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly isEstimated: boolean;
} {
  const count = (name: string): number | undefined => asNonNegativeInteger(ownProperty(reply, name));
  const [input, output] = [count('inputTokens'), count('outputTokens')];
  const [estimatedInput, estimatedOutput] = [count('estimatedInputTokens'), count('estimatedOutputTokens')];
  return {
    inputTokens: input ?? estimatedInput ?? 0,
    outputTokens: output ?? estimatedOutput ?? 0,
    isEstimated:
      (input === undefined && estimatedInput !== undefined) || (output === undefined && estimatedOutput !== undefined),
  };
}
