/** No echo of a secret survives: whole, in parts, encoded in any way, mixed, repeated, cut or in pieces. */
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
/** The names that HTML has for signs. */
const names: { readonly [sign: string]: string } = {
  ...{ '/': 'sol', '+': 'plus', '=': 'equals', ':': 'colon', '.': 'period', _: 'lowbar', '-': 'hyphen', '#': 'num' },
  ...{ '!': 'excl', '*': 'ast', '@': 'commat', '[': 'lsqb', ']': 'rsqb', '(': 'lpar', ')': 'rpar', ';': 'semi' },
  ...{ ',': 'comma', $: 'dollar', '%': 'percnt', '?': 'quest', '`': 'grave', '{': 'lcub', '}': 'rcub', '|': 'verbar' },
  ...{ '\\': 'bsol', '^': 'Hat', '\t': 'Tab', '\n': 'NewLine', '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot' },
};

/** What a server may make of a text that it echoes. */
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
  htmlNames: (text) => [...text].map((sign) => (sign in names ? `&${names[sign]};` : sign)).join(''),
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

/** What is left of a secret in a text, whatever it was encoded with. */
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

verifies('secret.echo', 'a secret of which each character is encoded in another way is found', () => {
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

verifies('secret.echo', 'the parts of a value are those that are secret, and ordinary words stay', () => {
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

verifies('secret.echo', 'what a text is cut in the middle of is taken out', () => {
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

verifies('secret.echo', 'a secret that comes in pieces is found, and nothing else is lost or held back', () => {
  fc.assert(
    fc.property(
      token,
      fc.constantFrom('plain', 'percentAll', 'unicode', 'entity'),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 80 }),
      (value, name, sizes) => {
        const encoded = encodings[name]?.(value) ?? value;
        const text = `Here: ${encoded} and ${encoded}, done.`;
        const stream = redactorOf([value]).openStream();
        let said = '';
        for (let at = 0, i = 0; at < text.length; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          said += stream.push(text.slice(at, at + size));
          at += size;
        }
        // Of an entity without its semicolon, one that comes later stays.
        const whole = (said + stream.end()).replaceAll(`${WITHHELD};`, WITHHELD);
        // The first two characters of a secret may be told before it is known for one.
        const begun = name === 'plain' ? ` (?:${value.slice(0, 2)}|${value[0]})(?=\\[withheld)` : '$^';
        expect(whole.replaceAll(new RegExp(begun, 'g'), ' ')).toBe(`Here: ${WITHHELD} and ${WITHHELD}, done.`);
      },
    ),
    { numRuns: 300, seed: 11 },
  );
});

verifies('secret.echo', 'values are redacted in texts, names and numbers, and are otherwise the same', () => {
  const redactor = redactorOf(['sk-12345678', '4711471147']);
  const clean = { a: [1, 'x', null, { b: true }], date: new Date(0) };
  expect(redactor.redactValue(clean)).toBe(clean);
  const value = { 'sk-12345678': 1, list: ['x', { deep: 'say %73k-12345678' }], n: 4711471147, __proto__: null };
  expect(redactor.redactValue(value)).toEqual({ [WITHHELD]: 1, list: ['x', { deep: `say ${WITHHELD}` }], n: WITHHELD });
});

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
        const left = redacted.replace(WITHHELD, '').replace(/\s/g, '');
        expect(redacted).toContain(WITHHELD);
        // What is left is what stands before the secret and after it.
        const most = before.length + (isHex ? hex : base64)(`${before}....`).length;
        expect(left.length, redacted).toBeLessThanOrEqual(most);
      },
    ),
    { numRuns: 500, seed: 11 },
  );
});

verifies('secret.echo', 'Base64 in lines or of something encoded is found in pieces and where it was cut', () => {
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
      let said = '';
      for (let at = 0; at < text.length; at += size) said += stream.push(text.slice(at, at + size));
      said += stream.end();
      expect(said).toContain(WITHHELD);
      // The first characters may be told before a run of Base64 is known for one.
      expect(said.replaceAll(WITHHELD, '').length, said).toBeLessThanOrEqual('Here: , done.'.length + 18);
      const cut = redactorOf([value]).redactText(`Here: ${encode(value.slice(0, 9)).replace(/[=\s]*$/, '')}`, 'end');
      expect(cut, cut).toMatch(/^Here: \[withheld\].{0,4}$/);
    }),
    { numRuns: 300, seed: 11 },
  );
});

verifies('secret.echo', 'a stream holds back no text that only looks like Base64', () => {
  const stream = redactorOf(['sk-Zq7xW9kPl-0123456789']).openStream();
  let most = 0;
  let [given, told] = ['', ''];
  for (let i = 0; i < 2000; i++) {
    const piece = `${(i * 7919).toString(36)}${i % 9 === 0 ? '\n' : ''}`;
    given += piece;
    told += stream.push(piece);
    most = Math.max(most, given.length - told.length);
  }
  expect(most).toBeLessThan(40);
  expect(told + stream.end()).toBe(given);
});

verifies('secret.echo', 'a number that is a secret which was rounded is withheld', () => {
  const redactor = redactorOf(['90718253640718253647']);
  const read: unknown = JSON.parse(
    '{"a": 90718253640718253647, "b": 9.0718253640718253647e30, "c": 907182536, "d": 1e300}',
  );
  expect(redactor.redactValue(read)).toEqual({ a: WITHHELD, b: WITHHELD, c: 907182536, d: 1e300 });
});

verifies('secret.echo', 'a secret whose bytes were read in the wrong encoding is found', () => {
  const value = 'gr\u00fc\u00dfe-Zq7xW9kPl';
  const redactor = redactorOf([`Bearer ${value}`]);
  const utf8 = Buffer.from(value).toString('latin1');
  const latin1 = Buffer.from(value, 'latin1');
  for (const echo of [utf8, utf8.replace(/\p{Cc}/gu, ''), latin1.toString(), latin1.toString('base64'), inner(utf8)]) {
    expect(redactor.redactText(`no ${echo}!`), echo).toMatch(/^no \[withheld\]=*!$/);
  }
});

verifies('secret.echo', 'a long secret and a hostile text take no long time', () => {
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

verifies('secret.echo', 'a variable that holds a path, an address or a name is no secret', () => {
  const settings = { GIT_DIR: '/home/ada/repo', NODE_ENV: 'production', PORT: '8080', URL: 'https://example.com/a' };
  for (const [name, value] of Object.entries(settings)) expect(mayHoldSecret(name, value), name).toBe(false);
  const secrets = { STOCK: 'tr0ub4dor&3', API_KEY: 'plain', DB: 'postgres://ada:pw@h/x', X: 'ghp_16C7e42F292c6912E7' };
  for (const [name, value] of Object.entries(secrets)) expect(mayHoldSecret(name, value), name).toBe(true);
});
