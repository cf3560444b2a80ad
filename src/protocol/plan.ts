/**
 * The plan language: the body of a composite as data. TOML workflows, JSON documents and `definePlan` all produce this
 * form, so one plan has one digest. Keys are those of workflow files (docs/workflows.md).
 */
import type { Json } from './json.js';
import type { BackendRef, JsonSchema, Mapping } from './loop.js';

/** One mapping for each member of a value, or one mapping for the entire value. */
export type PlanMapping = { readonly [member: string]: Mapping } | Mapping;

/**
 * A condition: `success`, `has_errors`, `empty`, `contains:TEXT`, `file_exists:PATH`, or an expression in CEL, the
 * Common Expression Language.
 */
export type PlanCondition = string;

/** What happens after a step has failed for good: the plan fails, the step is skipped, or the plan continues elsewhere. */
export type OnError = 'fail' | 'skip' | { readonly goto: string } | { readonly value: Json };

/** What replaces the result of a step whose attempts all failed. `escalate` asks a person whether to try again. */
export type RetryFallback =
  | 'skip'
  | 'escalate'
  | { readonly value: Json }
  | { readonly loop: string; readonly input?: PlanMapping };

/** How a failed step is repeated. */
export interface PlanRetry {
  readonly strategy: 'fixed' | 'exponential' | 'immediate' | 'none';
  /**
   * How often the step is attempted, the first attempt included.
   * @default 3; 1 for the strategy `none`
   */
  readonly max_attempts?: number;
  /**
   * The delay before the second attempt, in milliseconds.
   * @default 1000
   */
  readonly delay_ms?: number;
  /**
   * The upper bound of a delay of the strategy `exponential`, in milliseconds.
   * @default 60_000
   */
  readonly max_delay_ms?: number;
  /** @default the error of the last attempt */
  readonly fallback?: RetryFallback;
}

/** The members that every step can have. */
export interface PlanStepBase {
  /** The name of the step, for `goto`, messages and the trace. */
  readonly name?: string;
  /** The step is skipped unless this holds. */
  readonly condition?: PlanCondition;
  /** The name under which later steps find the result of this one. */
  readonly capture?: string;
  /** @default 'fail' */
  readonly on_error?: OnError;
}

/** The members of a step that is a call. */
export interface PlanCallBase extends PlanStepBase {
  /** @default that of the enclosing scope, or of the plan; without one, a failed step is not repeated */
  readonly retry?: PlanRetry;
  /** The time limit of one attempt, in milliseconds. */
  readonly timeout_ms?: number;
}

/** A verb with arguments, such as `edit {file} 'add logging'`. The loop that is bound to the verb is called. */
export interface ActionStep extends PlanCallBase {
  readonly action: string;
}

/** A call of a loop. */
export interface LoopStep extends PlanCallBase {
  readonly loop: string;
  readonly version?: string;
  /** @default the input of the plan */
  readonly input?: PlanMapping;
}

/** A call of a model. */
export interface PromptStep extends PlanCallBase {
  /** The prompt, with placeholders such as `{file}`. */
  readonly prompt: string;
  readonly system?: string;
  /** The schema of the reply. Without one, the output is the text of the reply. */
  readonly schema?: JsonSchema;
  readonly plugin?: never;
}

/** A call of a plugin: a built-in one, or the loop with this id, which gets the other members as its input. */
export interface PluginStep extends PlanCallBase {
  readonly plugin: string;
  readonly [parameter: string]: unknown;
}

/** A call of another workflow, by its id or, in a file, by its path. */
export interface WorkflowStep extends PlanCallBase {
  readonly workflow: string;
  /** @default the input of the plan */
  readonly input?: PlanMapping;
}

/** Steps that run one after another. */
export interface SequenceStep extends PlanStepBase {
  readonly type: 'sequence';
  readonly sequence: { readonly steps: readonly PlanStep[] };
}

/** Steps that are repeated. `$.iteration` is the zero-based number of the repetition. */
export interface RepeatStep extends PlanStepBase {
  readonly type: 'repeat';
  readonly repeat: {
    readonly steps: readonly PlanStep[];
    /** Ends the repetition when it holds after the steps. */
    readonly until?: PlanCondition;
    /** Ends the repetition when it does not hold before the steps. */
    readonly while?: PlanCondition;
    /**
     * How often the steps run at most.
     * @default unlimited; each repetition counts as a transition of the plan
     */
    readonly max?: number;
  };
}

/** The first case whose condition holds, or else the steps of `else`. */
export interface BranchStep extends PlanStepBase {
  readonly type: 'branch';
  readonly branch: {
    readonly cases: readonly { readonly condition: PlanCondition; readonly steps: readonly PlanStep[] }[];
    readonly else?: readonly PlanStep[];
  };
}

/** Steps that run once for each item of a list, one item after another: `$.item`, `$.index`. */
export interface EachStep extends PlanStepBase {
  readonly type: 'each';
  readonly each: {
    /** The list, as a path. */
    readonly items: Mapping;
    readonly steps: readonly PlanStep[];
    /**
     * True if the output is the list of the outputs of all items; otherwise it is that of the last item.
     * @default false
     */
    readonly collect?: boolean;
  };
}

/** When a fan-out has succeeded: all branches did, one did, or this many did. */
export type FanOutJoin = 'all' | 'any' | { readonly quorum: number };

/** A gate after a fan-out. If it does not pass, the plan pauses until a person approves that it continues. */
export interface FanOutGate {
  /** The value that is compared in the output of each successful branch, as a path. */
  readonly path: string;
  /** Passes if the average of the values is at least this number. */
  readonly threshold?: number;
  /** Passes if all values are equal. */
  readonly conflict?: true;
}

/** Steps that run concurrently: one branch for each item of a list, or for each of the given lists of steps. */
export interface FanOutStep extends PlanStepBase {
  readonly type: 'fanout';
  readonly fanout: {
    readonly items?: Mapping;
    readonly steps?: readonly PlanStep[];
    readonly branches?: readonly { readonly name?: string; readonly steps: readonly PlanStep[] }[];
    /**
     * How many branches run at the same time.
     * @default 8
     */
    readonly limit?: number;
    /** @default 'all' */
    readonly join?: FanOutJoin;
    readonly gates?: readonly FanOutGate[];
  };
}

/** Steps with names, retries and strategies of their own. What they capture is not visible after them. */
export interface ScopeStep extends PlanStepBase, PlanStrategies {
  readonly type: 'scope';
  readonly scope: { readonly steps: readonly PlanStep[] };
}

/** A pause: for a duration, until a time, or for a signal. */
export interface WaitStep extends PlanStepBase {
  readonly type: 'wait';
  readonly wait: {
    /** Milliseconds, or a text such as `90s` or `3 days`. */
    readonly for?: number | string;
    /** A time in ISO 8601 with a zone. */
    readonly until?: string;
    /** The name of a signal. Its payload is the output. */
    readonly signal?: string;
    /** How long to wait for the signal. Then the step fails with TIMEOUT. */
    readonly timeout?: number | string;
    /** The schema of the payload. */
    readonly schema?: JsonSchema;
  };
}

/** A step of a plan that is one call. */
export type PlanCallStep = ActionStep | LoopStep | PromptStep | PluginStep | WorkflowStep;

/** A step of a plan. */
export type PlanStep =
  | PlanCallStep
  | SequenceStep
  | RepeatStep
  | BranchStep
  | EachStep
  | FanOutStep
  | ScopeStep
  | WaitStep;

/** A transition between states. Without a condition it is always taken, unless the action of the state failed. */
export interface PlanTransition {
  readonly condition?: PlanCondition;
  /** The name of a state; `done` and `failed` exist in every plan. */
  readonly next: string;
}

/** The members of a state besides its action. */
export interface PlanStateBase {
  readonly name: string;
  readonly transitions?: readonly PlanTransition[];
  /** An action that runs when the state is entered from another one. */
  readonly on_entry?: string;
  /** An action that runs when the state is left for another one. */
  readonly on_exit?: string;
  /** States that run concurrently, each once. Their transitions are ignored. */
  readonly parallel?: readonly string[];
  /** The state that follows `parallel`. */
  readonly join?: string;
  /** True for a state that ends the plan. A state without transitions does so too. */
  readonly terminal?: boolean;
}

/** A state: an action of any kind, or none, and its transitions. */
export type PlanState = PlanStateBase & (PlanCallStep | PlanCallBase);

/** How the context of the plan is kept for models. */
export interface ContextStrategy {
  readonly strategy: 'flat' | 'task_list' | 'task_tree' | 'none';
}

/** How long outputs are kept and previewed for models. */
export interface CacheStrategy {
  readonly strategy: 'ephemeral' | 'in_memory' | 'persistent' | 'none';
  readonly preview_length?: number;
}

/** How a model chooses the actions of a plan without steps. */
export interface LlmStrategy {
  readonly strategy: 'simple' | 'none';
  readonly provider?: string;
  readonly model?: string;
  readonly system_prompt?: string;
  readonly thinking?: boolean;
  readonly max_actions?: number;
  readonly parallel?: boolean;
}

/** The strategies of a plan or a scope. */
export interface PlanStrategies {
  readonly context?: ContextStrategy;
  readonly cache?: CacheStrategy;
  readonly retry?: PlanRetry;
}

/** The bounds of a plan. Reaching one is not an error: the turn ends as `stopped`, with a reason. */
export interface PlanLimits {
  /**
   * How often the plan may repeat steps or change its state.
   * @default 50
   */
  readonly max_transitions?: number;
  /**
   * How often the plan may call a model itself.
   * @default 20
   */
  readonly max_turns?: number;
  /**
   * How often the same action may run in a row.
   * @default 5
   */
  readonly max_identical_actions?: number;
}

/** A plan: a list of steps, or a state machine. A plan with neither is driven by a model (`llm`). */
export interface PlanSpec extends PlanStrategies {
  readonly steps?: readonly PlanStep[];
  readonly states?: readonly PlanState[];
  /** @default the first state */
  readonly initial_state?: string;
  readonly llm?: LlmStrategy;
  readonly limits?: PlanLimits;
  /** The loops that its verbs stand for. Registration adds those of the project. */
  readonly verbs?: { readonly [verb: string]: string };
  /** The model of its prompts. Registration adds the default model of the project. */
  readonly backend?: BackendRef;
}
