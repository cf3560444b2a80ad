/** Finds the placeholders of a plan, and the names that its steps capture. */
import type { PlanSpec } from '../../protocol/plan.js';
import { compileText } from './placeholders.js';
import { planTexts } from './plan-texts.js';

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
/** Returns the placeholders of a plan. A text that cannot be read has none; compiling the plan reports it. */
export function placeholdersIn(spec: PlanSpec): PlanPlaceholders {
  const placeholders = new Set<string>();
  const captured = new Set<string>();
  for (const { member, text } of planTexts(spec)) {
    if (member === 'capture') captured.add(text);
    const template = templateIn(member, text);
    if (template !== undefined) for (const placeholder of placeholdersOf(template)) placeholders.add(placeholder);
  }
  return { placeholders: [...placeholders], captured };
}

/** Returns the part of a text that can have placeholders; undefined if there is none. */
function templateIn(member: string, text: string): string | undefined {
  if (TEXT_MEMBERS.has(member)) return text;
  return CONDITION_MEMBERS.has(member) ? /^\s*file_exists\s*:(.*)$/s.exec(text)?.[1] : undefined;
}

function placeholdersOf(text: string): readonly string[] {
  try {
    return compileText(text).placeholders;
  } catch {
    return [];
  }
}
