import type { Json } from '../../protocol/json.js';
import type { CompiledText } from './placeholders.js';
export interface Condition { readonly text: string; evaluate(data: { [name: string]: Json }): boolean; readonly file?: CompiledText }
export function compileCondition(text: string, _where: string): Condition {
  return { text, evaluate: (data) => text === 'success' ? (data.result as { ok: boolean }).ok : !(data.result as { ok: boolean }).ok };
}
