// Documents that two readers could understand differently are refused, before they are signed and before they are verified.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect } from 'vitest';
import { decodeBase64, decodeBase64Url } from '../../src/base/base64.js';
import { canonicalJson } from '../../src/json/canonical.js';
import { signableJson } from '../../src/json/i-json.js';
import { parseCanonicalJson, parseStrictJson } from '../../src/json/strict-json.js';
import type { Json } from '../../src/protocol/json.js';
import type { ReceiptPredicate } from '../../src/protocol/receipt.js';
import { parseStatement, statementBytes } from '../../src/views/receipt/statement.js';
import { sealSession } from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

const directory = new URL('../../../shared/data/jcs/testdata/', import.meta.url);
const hasPairs = existsSync(directory);

verifies('receipt.strict-forms', 'all 6 public pairs of RFC 8785 have the listed canonical form', (context) => {
  context.skip(!hasPairs, 'needs ../shared/data');
  const names = readdirSync(new URL('input/', directory));
  expect(names).toHaveLength(6);
  for (const name of names) {
    const input = JSON.parse(readFileSync(new URL(`input/${name}`, directory), 'utf8')) as Json;
    expect(canonicalJson(input), name).toBe(readFileSync(new URL(`output/${name}`, directory), 'utf8'));
  }
});

const [{ predicate }] = (await sealSession('a', { turns: 1 })) as unknown as [{ predicate: ReceiptPredicate }];
const text = statementBytes(predicate).toString();
const raw = (...bytes: number[]): Buffer => Buffer.from(bytes);
const withReason = (json: string): string => text.replace('"predicate":{', `"predicate":{"reason":${json},`);
const withNumber = (json: string): string => text.replace('"count":8', `"count":${json}`);

/** Statements that are refused before they are verified. */
const unreadable: { readonly [form: string]: string | Uint8Array } = {
  'a duplicate member': text.replace('"turn":', '"turn":"a.0","turn":'),
  'a duplicate member with another spelling': text.replace('"turn":', '"\\u0074urn":"a.0","turn":'),
  'a duplicate member in a list': text.replace('"state":"done"', '"state":"done","state":"done"'),
  'a duplicate first member': text.replace('{', '{"_type":"https://in-toto.io/Statement/v1",'),
  'a lone high surrogate': withReason('"\\ud800"'),
  'a lone low surrogate': withReason('"\\udc00"'),
  'surrogates in the wrong order': withReason('"\\udc00\\ud800"'),
  'a lone surrogate in a key': text.replace('"turn":', '"\\ud800":1,"turn":'),
  '1e400': withNumber('1e400'),
  '-1e400': withNumber('-1e400'),
  '1e-400': withNumber('1e-400'),
  '-0': withNumber('-0'),
  '-0.0': withNumber('-0.0'),
  '-0e5': withNumber('-0e5'),
  '2^53 + 1': withNumber('9007199254740993'),
  '-(2^53 + 1)': withNumber('-9007199254740993'),
  '2^63 - 1': withNumber('9223372036854775807'),
  '2^64': withNumber('18446744073709551617'),
  'a fraction with too many digits': withNumber('0.10000000000000000555'),
  'a number of 200 digits': withNumber('1'.repeat(200)),
  'a negative count': withNumber('-1'),
  'a count with a fraction': withNumber('1.5'),
  'a leading zero': withNumber('08'),
  'a plus sign': withNumber('+8'),
  'a hexadecimal number': withNumber('0x8'),
  'a trailing dot': withNumber('8.'),
  NaN: withNumber('NaN'),
  Infinity: withNumber('Infinity'),
  'a number as text': withNumber('"8"'),
  'a byte order mark': `\ufeff${text}`,
  'a UTF-16 text': Buffer.from(`\ufeff${text}`, 'utf16le'),
  'bytes after the end': `${text}x`,
  'a second document': `${text}${text}`,
  'a zero byte after the end': `${text}\0`,
  'a zero byte before the start': `\0${text}`,
  'a form feed as white space': `${text}\f`,
  'a no-break space as white space': `${text}\u00a0`,
  'an invalid UTF-8 byte': Buffer.concat([Buffer.from(text), raw(0xff)]),
  'an overlong encoding': Buffer.from(withReason('"@@"')).map((byte, i, all) =>
    byte === 0x40 ? (all[i + 1] === 0x40 ? 0xc0 : 0x80) : byte,
  ),
  'an encoded surrogate': Buffer.from(text.replace('"turn":"a.0"', '"turn":"@"')).map((byte) =>
    byte === 0x40 ? 0xed : byte,
  ),
  'a cut character': Buffer.concat([Buffer.from(text.slice(0, -1)), raw(0xe2, 0x82)]),
  'a __proto__ member': text.replace('"turn":', '"__proto__":{},"turn":'),
  'an escaped __proto__ member': text.replace('"turn":', '"\\u005f_proto__":{},"turn":'),
  'a constructor member': text.replace('"turn":', '"constructor":{},"turn":'),
  'an unknown member': text.replace('"turn":', '"extra":1,"turn":'),
  'a control character in a text': withReason('"\n"'),
  'an unknown escape': withReason('"\\x41"'),
  'a short escape': withReason('"\\u41"'),
  'an unclosed text': withReason('"abc'),
  'single quotes': withReason("'abc'"),
  'a comment': text.replace('{', '{/* */'),
  'a trailing comma': text.replace(/}$/, ',}'),
  'an array with a hole': text.replace('"approvals":[]', '"approvals":[,]'),
  undefined: withReason('undefined'),
  'nesting of 10,000 levels': withReason(`${'['.repeat(10_000)}${']'.repeat(10_000)}`),
  'an unclosed document': text.slice(0, -1),
  'an empty document': '',
  null: 'null',
};

const cyclic: { [name: string]: unknown } = {};
cyclic.self = cyclic;
const sparse: unknown[] = [];
sparse[2] = 1;

/** Values that are refused before they are signed. */
const unsignable: { readonly [form: string]: unknown } = {
  undefined: undefined,
  'an undefined member': { a: undefined },
  'an undefined item': [undefined],
  'a sparse array': sparse,
  'an array with a member': Object.assign([1], { extra: 1 }),
  'a toJSON method': { toJSON: () => 'x' },
  'an inherited toJSON method': Object.create({ toJSON: () => 'x' }),
  'a date': new Date(0),
  'a map': new Map(),
  'a boxed text': Object('x'),
  'a function': () => 1,
  'a symbol': Symbol('x'),
  'a symbol key': { [Symbol('x')]: 1 },
  'a big integer': 1n,
  NaN: Number.NaN,
  infinity: Number.POSITIVE_INFINITY,
  'minus zero': -0,
  '2^53': 2 ** 53,
  '1e21': 1e21,
  'a lone surrogate': '\ud800',
  'a lone surrogate in a key': { '\udc00': 1 },
  'an own __proto__ member': JSON.parse('{"__proto__":1}'),
  'a getter': Object.defineProperty({}, 'a', { get: () => 1, enumerable: true }),
  'a hidden member': Object.defineProperty({}, 'a', { value: 1, enumerable: false }),
  'a cycle': cyclic,
  'nesting of 1,000 levels': JSON.parse(`${'['.repeat(1000)}${']'.repeat(1000)}`),
};

verifies('receipt.strict-forms', 'more than 60 forms are refused before verifying and before signing', () => {
  expect(Object.keys(unreadable).length + Object.keys(unsignable).length).toBeGreaterThanOrEqual(60);
  expect(parseStatement(Buffer.from(text)).predicate).toEqual(predicate);
  for (const [form, document] of Object.entries(unreadable))
    expect(() => parseStatement(Buffer.from(document as string)), form).toThrow(/refused|invalid/);
  for (const [form, value] of Object.entries(unsignable)) {
    expect(() => signableJson(value), form).toThrow('cannot be signed');
    expect(() => statementBytes({ ...predicate, reason: value as string }), form).toThrow('cannot be signed');
  }
});

verifies(
  'receipt.strict-forms',
  'every value that is signed is read back as it was, and has one canonical text',
  () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const json = JSON.parse(JSON.stringify(value)) as Json;
        let signed: string;
        try {
          signed = signableJson(json);
        } catch {
          return;
        }
        const parsed = parseStrictJson(Buffer.from(signed));
        expect(parsed).toEqual(json);
        expect(signableJson(parsed)).toBe(signed);
        expect(parseCanonicalJson(Buffer.from(signed), {})).toEqual(json);
        const pretty = Buffer.from(JSON.stringify(json, undefined, 1));
        if (pretty.toString() !== signed) expect(() => parseCanonicalJson(pretty, {})).toThrow('refused');
      }),
      { numRuns: 500 },
    );
    for (const number of ['1.0', '1e2', '1E+2', '0.1', '1e-7', '100e-2', '5e-324', '0.0', '9007199254740991', '-1.50'])
      expect(parseStrictJson(Buffer.from(number)), number).toBe(Number(number));
  },
);

verifies('receipt.strict-forms', 'bytes have exactly one text', () => {
  for (const wrong of ['AA', 'AA=', 'AB==', 'AA==\n', ' AA==', 'A-==', '=', 'AAA=A', 'AA==AA=='])
    expect(decodeBase64(wrong), wrong).toBeUndefined();
  for (const wrong of ['AA==', 'AB', 'A', 'A+']) expect(decodeBase64Url(wrong), wrong).toBeUndefined();
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const encoded = Buffer.from(bytes);
      expect(decodeBase64(encoded.toString('base64'))).toEqual(encoded);
      expect(decodeBase64Url(encoded.toString('base64url'))).toEqual(encoded);
    }),
  );
});
