/** Finds the placeholders of a plan, and the names that its steps capture. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { compileText } from './placeholders.js';

/** The placeholders of a plan. */
interface PlanPlaceholders {
  readonly placeholders: readonly string[];
  /** The names under which steps capture their results. */
  readonly captured: ReadonlySet<string>;
}

/** Members with texts that have placeholders. */
const TEXT_MEMBERS: ReadonlySet<string> = new Set(['action', 'prompt', 'on_entry', 'on_exit', 'format']);
/** Members with conditions, of which only `file_exists:PATH` has placeholders. */
const CONDITION_MEMBERS: ReadonlySet<string> = new Set(['condition', 'until', 'while', 'test']);
/** Members with data of the author, which has neither. */
const DATA_MEMBERS: ReadonlySet<string> = new Set(['value', 'schema', 'input', 'on_error', 'retry', 'llm']);

/** Returns the placeholders of a plan. A text that cannot be read has none; compiling the plan reports it. */
export function placeholdersIn(spec: PlanSpec): PlanPlaceholders {
  const placeholders = new Set<string>();
  const captured = new Set<string>();
  const visit = (value: Json): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (!isObject(value)) return;
    for (const [name, member] of Object.entries(value)) {
      const text = typeof member === 'string' ? textIn(name, member) : undefined;
      if (text !== undefined) for (const placeholder of placeholdersOf(text)) placeholders.add(placeholder);
      else if (name === 'capture' && typeof member === 'string') captured.add(member);
      else if (!DATA_MEMBERS.has(name)) visit(member);
    }
  };
  visit(spec as unknown as Json);
  return { placeholders: [...placeholders], captured };
}

/** Returns the part of a member that can have placeholders; undefined if there is none. */
function textIn(name: string, text: string): string | undefined {
  if (TEXT_MEMBERS.has(name)) return text;
  return CONDITION_MEMBERS.has(name) ? /^\s*file_exists\s*:(.*)$/s.exec(text)?.[1] : undefined;
}

function placeholdersOf(text: string): readonly string[] {
  try {
    return compileText(text).placeholders;
  } catch {
    return [];
  }
}
