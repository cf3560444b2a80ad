/**
 * Refuses code of other languages in a condition or an iterator, such as `python:len(x) > 0`. It is never run; the
 * reason suggests the equivalent expression, or the step that replaces it.
 */
import { checkCel } from '../../json/cel/check.js';
import { parseCel } from '../../json/cel/parse.js';

const EMBEDDED = /^(python3?|py|javascript|js|node|lua|shell|bash|sh|ruby|eval)\s*:\s*(.*)$/is;
const FILE_TEST = /^(?:test|\[{1,2})\s+-[ef]\s+("[^"]*"|'[^']*'|[^\s\]]+)\s*\]{0,2}$/;
const CALL = /^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\(([^()]*)\)$/;
const TOKEN = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_][\w.]*|[!=]==|[~=!<>]=|&&|\|\||\s+|./gs;

/** Words and operators of other languages, and their form in CEL. */
const replacements = new Map([
  ...[['and', '&&'] as const, ['or', '||'] as const, ['===', '=='] as const, ['!==', '!='] as const],
  ...[['~=', '!='] as const, ['is', '=='] as const, ['len', 'size'] as const],
  ...[['True', 'true'] as const, ['False', 'false'] as const],
  ...['None', 'nil', 'undefined'].map((name) => [name, 'null'] as const),
]);
const methods = new Map([
  ['startswith', 'startsWith'],
  ['endswith', 'endsWith'],
  ['includes', 'contains'],
  ['lower', 'lowerAscii'],
  ['upper', 'upperAscii'],
  ['toLowerCase', 'lowerAscii'],
  ['toUpperCase', 'upperAscii'],
  ['strip', 'trim'],
]);

/** Returns why a text with embedded code is refused, with a suggestion; undefined if it has none. */
export function embeddedCodeReason(text: string): string | undefined {
  const [, language, code = ''] = EMBEDDED.exec(text.trim()) ?? [];
  if (language === undefined) return undefined;
  return `embedded code (${language.toLowerCase()}:) is never run; ${suggestionFor(code.trim())}`;
}

function suggestionFor(code: string): string {
  const [, path] = FILE_TEST.exec(code) ?? [];
  if (path !== undefined) return `write file_exists:${path.replace(/^["']|["']$/g, '')}`;
  const expression = translate(code);
  if (isCondition(expression)) return `write ${expression}`;
  const [, called] = CALL.exec(code) ?? [];
  if (called === undefined) return 'write an expression such as size(result.output.errors) > 0';
  const source = called
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase();
  return `to iterate over its results, use a step with plugin = "for-each" and source = "${source}"`;
}

function isCondition(expression: string): boolean {
  try {
    return checkCel(parseCel(expression)) === undefined;
  } catch {
    return false;
  }
}

/** Longer code is not translated. */
const MAX_TRANSLATED_CHARS = 300;

/** Translates the simple forms that other languages write differently. The result may still be no valid expression. */
function translate(code: string): string {
  const tokens = code.length > MAX_TRANSLATED_CHARS ? [] : code.match(TOKEN);
  return translateTokens(tokens ?? []).trim();
}

function translateTokens(tokens: readonly string[]): string {
  let translated = '';
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] ?? '';
    const rest = tokens.slice(i + 1);
    if (token === 'not' && nextWord(rest) === 'in') {
      const membership = /(\S+)\s*$/;
      const [, right = ''] = /^\s*in\s+(.*)$/s.exec(rest.join('')) ?? [];
      return `${translated.replace(membership, '!($1 in ')}${translateTokens(right.match(TOKEN) ?? [])})`;
    }
    if (token === 'is' && nextWord(rest) === 'not') {
      translated += '!=';
      i += 1 + rest.indexOf('not');
    } else if (token === 'not') return translated + negation(rest);
    else if (token === '#') {
      const [name = '', ...others] = rest;
      return `${translated}size(${name})${translateTokens(others)}`;
    } else translated += replacementOf(token, tokens[i + 1] === '(');
  }
  return translated;
}

const nextWord = (tokens: readonly string[]): string | undefined => tokens.find((token) => token.trim() !== '');

/** Negates the operand at the start of the tokens, which ends before `and`, `or` or an unopened bracket. */
function negation(tokens: readonly string[]): string {
  let depth = 0;
  const end = tokens.findIndex((token) => {
    if (token === '(') depth++;
    return token === ')' ? --depth < 0 : depth === 0 && /^(?:and|or|&&|\|\|)$/.test(token);
  });
  const length = end === -1 ? tokens.length : end;
  const operand = translateTokens(tokens.slice(0, length));
  const isCompound = /[=<>]|\s(?:in|\+|-)\s/.test(operand.replace(/\([^()]*\)/g, ''));
  const space = operand.endsWith(' ') ? ' ' : '';
  const negated = isCompound ? `!(${operand.trim()})` : `!${operand.trim()}`;
  return `${negated}${space}${translateTokens(tokens.slice(length))}`;
}

function replacementOf(token: string, isCalled: boolean): string {
  const replaced = replacements.get(token);
  if (replaced !== undefined) return replaced;
  if (isCalled && methods.has(token)) return methods.get(token) ?? token;
  const [, target, last = ''] = /^(.+)\.(\w+)$/.exec(token) ?? [];
  if (target === undefined || /^["']/.test(token)) return token;
  if (!isCalled && last === 'length') return `size(${target})`;
  return isCalled && methods.has(last) ? `${target}.${methods.get(last)}` : token;
}
