/** Redaction of echoed secrets: complete, in parts, encoded, nested, repeated, cut off, and in streams. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { redactorOf, WITHHELD } from './redact.js';
import { mayHoldSecret, secretParts } from './secret-parts.js';

const percent = (text: string, all: boolean): string =>
  [...Buffer.from(text)]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return !all && /[\w.~-]/.test(char) ? char : `%${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');
const unicode = (text: string): string =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');
const entity = (text: string): string => [...text].map((point) => `&#${point.codePointAt(0)};`).join('');
const html = (text: string): string =>
  text.replace(
    /[&<>"']/g,
    (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[sign] ?? '',
  );
const inner = (text: string): string => JSON.stringify(text).slice(1, -1);

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const hex = (text: string): string => Buffer.from(text).toString('hex');
const wrapped = (text: string, width: number, end: string): string =>
  text.replace(new RegExp(`.{${width}}`, 'g'), (line) => `${line}${end}`);
/** The HTML entity names of punctuation characters. */
const entityNames: { readonly [sign: string]: string } = {
  ...{ '/': 'sol', '+': 'plus', '=': 'equals', ':': 'colon', '.': 'period', _: 'lowbar', '-': 'hyphen', '#': 'num' },
  ...{ '!': 'excl', '*': 'ast', '@': 'commat', '[': 'lsqb', ']': 'rsqb', '(': 'lpar', ')': 'rpar', ';': 'semi' },
  ...{ ',': 'comma', $: 'dollar', '%': 'percnt', '?': 'quest', '`': 'grave', '{': 'lcub', '}': 'rcub', '|': 'verbar' },
  ...{ '\\': 'bsol', '^': 'Hat', '\t': 'Tab', '\n': 'NewLine', '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot' },
};

/** The ways in which a server may transform a text that it echoes. */
const encodings: { readonly [name: string]: (text: string) => string } = {
  plain: (text) => text,
  uri: encodeURIComponent,
  uriLower: (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
  form: (text) => new URLSearchParams({ q: text }).toString().slice(2),
  percentSome: (text) => percent(text, false),
  percentAll: (text) => percent(text, true),
  twiceUri: (text) => encodeURIComponent(encodeURIComponent(text)),
  json: inner,
  jsonTwice: (text) => inner(inner(text)),
  jsonSlash: (text) => inner(text).replaceAll('/', '\\/'),
  unicode,
  unicodeUpper: (text) => unicode(text).replace(/[0-9a-f]{4}/g, (hex) => hex.toUpperCase()),
  html,
  entity,
  jsonOfUri: (text) => inner(encodeURIComponent(text)),
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  base64Within: (text) => Buffer.from(`user:${text}, more`).toString('base64'),
  base64Uri: (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  hex: (text) => Buffer.from(text).toString('hex').toUpperCase(),
  htmlNames: (text) => [...text].map((sign) => (sign in entityNames ? `&${entityNames[sign]};` : sign)).join(''),
  base64OfUri: (text) => base64(encodeURIComponent(text)),
  base64OfJson: (text) => base64(JSON.stringify({ k: text })),
  base64OfPercent: (text) => base64(percent(text, true)),
  base64Twice: (text) => base64(base64(text)),
  base64Thrice: (text) => base64(base64(base64(text))),
  hexInBase64: (text) => base64(hex(text)),
  hexOfBase64: (text) => hex(base64(text)),
  hexOfJson: (text) => hex(inner(text)),
  uriOfBase64OfUri: (text) => encodeURIComponent(base64(encodeURIComponent(text))),
  jsonOfBase64Lines: (text) => inner(wrapped(base64(`user: ${text}`), 76, '\r\n')),
  base64OfJsonInLines: (text) => wrapped(base64(JSON.stringify({ before: 'b', k: text })), 20, '\n'),
};

const signs = [...'abcXYZ0189-_.+/=&"\'<>:@!$%*()[]{}|~ ,;#?^`äß€𝄞'];
const secret = fc
  .array(fc.constantFrom(...signs), { minLength: 10, maxLength: 60 })
  .map((points) => points.join('').trim())
  .filter((text) => text.length >= 10 && /[0-9]/.test(text));
const token = fc.stringMatching(/^[A-Za-z0-9_-]{10,60}$/).filter((text) => /\d/.test(text));
const around = fc.stringMatching(/^[ .,:{}a-z]{0,20}$/);

/** True if a text still contains the secret, encoded or plain. */
function survives(text: string, value: string, encode: (text: string) => string): boolean {
  const encoded = encode(value);
  return text.includes(encoded) || text.includes(value);
}

verifies('secret.echo', 'a secret is found however it is encoded', () => {
  fc.assert(
    fc.property(secret, fc.constantFrom(...Object.keys(encodings)), around, around, (value, name, before, after) => {
      const encode = encodings[name] as (text: string) => string;
      const redacted = redactorOf([value]).redactText(`${before}${encode(value)}${after}`);
      expect(redacted, name).toContain(WITHHELD);
      expect(survives(redacted, value, encode), `${name}: ${redacted}`).toBe(false);
    }),
    { numRuns: 1000, seed: 11 },
  );
});

verifies('secret.echo', 'a secret is found even if each character is encoded differently', () => {
  const ways = [encodings.plain, encodings.percentAll, encodings.unicode, encodings.entity, encodings.json];
  fc.assert(
    fc.property(token, fc.array(fc.nat(4), { minLength: 60, maxLength: 60 }), (value, choice) => {
      const mixed = [...value].map((point, i) => ways[choice[i] ?? 0]?.(point) ?? point).join('');
      expect(redactorOf([value]).redactText(`<${mixed}>`)).toBe(`<${WITHHELD}>`);
    }),
    { numRuns: 300, seed: 11 },
  );
});

verifies('secret.echo', 'the credentials of a header are found without their scheme', () => {
  fc.assert(
    fc.property(token, fc.constantFrom(...Object.keys(encodings)), (value, name) => {
      const encode = encodings[name] as (text: string) => string;
      for (const header of [`Bearer ${value}`, `token ${value}`, `a=b; session=${value}; c="d"`, `x, ${value}`]) {
        expect(survives(redactorOf([header]).redactText(encode(value)), value, encode), `${header} ${name}`).toBe(
          false,
        );
      }
      const basic = `Basic ${Buffer.from(`ada:${value}`).toString('base64')}`;
      expect(survives(redactorOf([basic]).redactText(encode(value)), value, encode), `${basic} ${name}`).toBe(false);
    }),
    { numRuns: 300, seed: 11 },
  );
});

verifies('secret.echo', 'the secret parts of a value are redacted, and ordinary words are not', () => {
  expect(secretParts('Bearer sk-12345678')).toEqual(['Bearer sk-12345678', 'sk-12345678']);
  expect(secretParts('short')).toEqual([]);
  expect(secretParts('postgres://ada:s3cr%20t!@db/x')).toEqual([
    'postgres://ada:s3cr%20t!@db/x',
    's3cr%20t!',
    's3cr t!',
  ]);
  expect(secretParts('Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl')).toContain('c2lnbmF0dXJl');
  expect(secretParts('-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----')).toContain('MIIEvQIBADANBgkq');
  const { redactText } = redactorOf(['Bearer abc123def456', 'correct horse battery staples']);
  const ordinary = 'The Bearer scheme: a correct answer about batteries, 50% off & more \\u0041.';
  expect(redactorOf(['Bearer abc123def456', 'correct horse battery staples']).redactText(ordinary)).toBe(ordinary);
  expect(typeof redactText).toBe('function');
});

verifies('secret.echo', 'a secret that is cut off at an edge of the text is redacted', () => {
  fc.assert(
    fc.property(token, fc.integer({ min: 5, max: 9 }), fc.boolean(), (value, length, encoded) => {
      const redactor = redactorOf([`Bearer ${value}`]);
      const head = value.slice(0, length);
      expect(redactor.redactText(`say ${encoded ? percent(head, true) : head}`, 'end')).toBe(`say ${WITHHELD}`);
      expect(redactor.redactText(`${value.slice(-length)} it was`, 'start')).toBe(`${WITHHELD} it was`);
    }),
    { numRuns: 200, seed: 11 },
  );
});

verifies('secret.echo', 'a secret in a stream is redacted, and no other text is lost or held back', () => {
  fc.assert(
    fc.property(
      token,
      fc.constantFrom('plain', 'percentAll', 'unicode', 'entity'),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 80 }),
      (value, name, sizes) => {
        const encoded = encodings[name]?.(value) ?? value;
        const text = `Here: ${encoded} and ${encoded}, done.`;
        const stream = redactorOf([value]).openStream();
        let emitted = '';
        for (let at = 0, i = 0; at < text.length; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          emitted += stream.push(text.slice(at, at + size));
          at += size;
        }
        // The semicolon of an entity may arrive after the entity was redacted without it.
        const complete = (emitted + stream.end()).replaceAll(`${WITHHELD};`, WITHHELD);
        // Up to two characters of a secret may be emitted before it is recognized.
        const prefix = name === 'plain' ? ` (?:${value.slice(0, 2)}|${value[0]})(?=\\[withheld)` : '$^';
        expect(complete.replaceAll(new RegExp(prefix, 'g'), ' ')).toBe(`Here: ${WITHHELD} and ${WITHHELD}, done.`);
      },
    ),
    { numRuns: 300, seed: 11 },
  );
});

verifies(
  'secret.echo',
  'secrets in strings, member names and numbers are redacted, and other values are returned unchanged',
  () => {
    const redactor = redactorOf(['sk-12345678', '4711471147']);
    const clean = { a: [1, 'x', null, { b: true }], date: new Date(0) };
    expect(redactor.redactValue(clean)).toBe(clean);
    const value = { 'sk-12345678': 1, list: ['x', { deep: 'say %73k-12345678' }], n: 4711471147, __proto__: null };
    expect(redactor.redactValue(value)).toEqual({
      [WITHHELD]: 1,
      list: ['x', { deep: `say ${WITHHELD}` }],
      n: WITHHELD,
    });
  },
);

verifies('secret.echo', 'white space within Base64 or hexadecimal does not hide a secret', () => {
  const ends = fc.constantFrom('\n', '\r\n', '\n  ', ' ', '\t');
  fc.assert(
    fc.property(
      secret,
      fc.integer({ min: 1, max: 80 }),
      ends,
      around,
      fc.boolean(),
      (value, width, end, before, isHex) => {
        const encoded = (isHex ? hex : base64)(`${before}${value}`);
        const redacted = redactorOf([value]).redactText(`${before} ${wrapped(encoded, width, end)}`);
        const remaining = redacted.replace(WITHHELD, '').replace(/\s/g, '');
        expect(redacted).toContain(WITHHELD);
        // Only the text before and after the secret may remain.
        const maxRemaining = before.length + (isHex ? hex : base64)(`${before}....`).length;
        expect(remaining.length, redacted).toBeLessThanOrEqual(maxRemaining);
      },
    ),
    { numRuns: 500, seed: 11 },
  );
});

verifies('secret.echo', 'wrapped and nested Base64 is redacted in a stream and at a cut edge', () => {
  const ways = {
    lines: (text: string) => wrapped(base64(text), 10, '\n'),
    ofUri: (text: string) => base64(percent(text, true)),
    twice: (text: string) => base64(base64(text)),
  };
  const sizes = fc.integer({ min: 1, max: 9 });
  fc.assert(
    fc.property(token, fc.constantFrom(...Object.values(ways)), sizes, (value, encode, size) => {
      const text = `Here: ${encode(value)}, done.`;
      const stream = redactorOf([value]).openStream();
      let emitted = '';
      for (let at = 0; at < text.length; at += size) emitted += stream.push(text.slice(at, at + size));
      emitted += stream.end();
      expect(emitted).toContain(WITHHELD);
      // The first characters may be emitted before a run of Base64 is recognized.
      expect(emitted.replaceAll(WITHHELD, '').length, emitted).toBeLessThanOrEqual('Here: , done.'.length + 18);
      const cut = redactorOf([value]).redactText(`Here: ${encode(value.slice(0, 9)).replace(/[=\s]*$/, '')}`, 'end');
      expect(cut, cut).toMatch(/^Here: \[withheld\].{0,4}$/);
    }),
    { numRuns: 300, seed: 11 },
  );
});

verifies('secret.echo', 'a stream does not hold back text that merely resembles Base64', () => {
  const stream = redactorOf(['sk-Zq7xW9kPl-0123456789']).openStream();
  let maxPending = 0;
  let [input, output] = ['', ''];
  for (let i = 0; i < 2000; i++) {
    const piece = `${(i * 7919).toString(36)}${i % 9 === 0 ? '\n' : ''}`;
    input += piece;
    output += stream.push(piece);
    maxPending = Math.max(maxPending, input.length - output.length);
  }
  expect(maxPending).toBeLessThan(40);
  expect(output + stream.end()).toBe(input);
});

verifies('secret.echo', 'a numeric secret is redacted even if parsing rounded it', () => {
  const redactor = redactorOf(['90718253640718253647']);
  const parsed: unknown = JSON.parse(
    '{"a": 90718253640718253647, "b": 9.0718253640718253647e30, "c": 907182536, "d": 1e300}',
  );
  expect(redactor.redactValue(parsed)).toEqual({ a: WITHHELD, b: WITHHELD, c: 907182536, d: 1e300 });
});

verifies('secret.echo', 'a secret that was decoded with the wrong character set is found', () => {
  const value = 'gr\u00fc\u00dfe-Zq7xW9kPl';
  const redactor = redactorOf([`Bearer ${value}`]);
  const utf8 = Buffer.from(value).toString('latin1');
  const latin1 = Buffer.from(value, 'latin1');
  for (const echo of [utf8, utf8.replace(/\p{Cc}/gu, ''), latin1.toString(), latin1.toString('base64'), inner(utf8)]) {
    expect(redactor.redactText(`no ${echo}!`), echo).toMatch(/^no \[withheld\]=*!$/);
  }
});

verifies('secret.echo', 'redaction of a long secret and of hostile text takes bounded time', () => {
  const long = Array.from({ length: 4000 }, (_, i) => String.fromCharCode(33 + ((i * 7) % 90))).join('');
  const from = performance.now();
  const redactor = redactorOf([long]);
  expect(redactor.redactText(`x ${JSON.stringify(long)} y`)).not.toContain(long.slice(100, 120));
  for (const sign of [
    '\\',
    '%',
    '&',
    '%25',
    '&amp;',
    long[0] ?? '',
    '\\u00',
    'QUFB',
    'QUFB\n',
    '41',
    'QUJDREVGR0hJ%0A',
    'QUJDREVGR0hJ\\n',
    'a ',
  ]) {
    redactor.redactText(sign.repeat(100_000), 'end');
  }
  expect(performance.now() - from).toBeLessThan(30_000);
});

verifies('secret.echo', 'a variable that holds a path, a URL or a word is not treated as a secret', () => {
  const settings = { GIT_DIR: '/home/ada/repo', NODE_ENV: 'production', PORT: '8080', URL: 'https://example.com/a' };
  for (const [name, value] of Object.entries(settings)) expect(mayHoldSecret(name, value), name).toBe(false);
  const secrets = { STOCK: 'tr0ub4dor&3', API_KEY: 'plain', DB: 'postgres://ada:pw@h/x', X: 'ghp_16C7e42F292c6912E7' };
  for (const [name, value] of Object.entries(secrets)) expect(mayHoldSecret(name, value), name).toBe(true);
});
