/** The flags that every verb accepts: locations, and permissions of the operator. */

/** The flags of the settings, with their help texts. */
export const SETTING_FLAGS: readonly (readonly [flags: string, help: string])[] = [
  ['--data <dir>', 'the directory of the journal (RONDO_DATA; default .rondo)'],
  ['--loops <dir>', 'the directory of the definitions (RONDO_LOOPS; default loops)'],
  ['--config <file>', 'the config of the project (RONDO_CONFIG; default rondo.toml if it exists)'],
  ['--store <url>', 'sqlite:, sqlite:PATH or memory: (RONDO_STORE; default sqlite: in the data directory)'],
  ['--engine <name>', 'the engine that runs turns (RONDO_ENGINE; default local)'],
];

/** The flags of the permissions, with their help texts. Each may be repeated. */
export const PERMISSION_FLAGS: readonly (readonly [flags: string, help: string])[] = [
  ['--trust <dir>', 'allow definitions of this directory to run code; may be repeated (RONDO_TRUST, see: rondo trust)'],
  ['--send <var=host>', 'allow this variable to be sent to this host; may be repeated (RONDO_SEND)'],
  ['--reach <host>', 'allow connections to this non-public host; may be repeated (RONDO_REACH)'],
];
