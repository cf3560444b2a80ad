/** The kinds of tool implementations: built-in tools, modules, executables and HTTP endpoints. */
export { builtinTools } from './builtin.js';
export { type ExecOptions, execTools } from './exec.js';
export { type HttpOptions, httpsTools, httpTools } from './http.js';
export { moduleTools } from './module.js';
