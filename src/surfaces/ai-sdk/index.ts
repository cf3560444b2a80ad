/**
 * `rondo/ai-sdk`: Rondo together with the AI SDK. Serves an agent to `useChat`, converts the journal of a session to UI
 * messages, and offers a loop as a tool for `generateText` and `streamText`.
 */

export { nodeListener } from '../http/node.js';
export { type ChatHandler, type ChatOptions, chatHandler } from './chat.js';
export { type ChatAccess, chatSession, type SessionHost } from './chat-session.js';
export type { AgentData, CallData, DataChunk, RondoData, UiChunk } from './chunk.js';
export type { HostOption } from './host-option.js';
export { type UiMessage, type UiPart, type UiToolPart, uiMessages } from './message.js';
export {
  type AISDKCall,
  type AISDKSchema,
  type AISDKTool,
  type AISDKToolOptions,
  type ToolHost,
  type ToolTurn,
  toAISDKTool,
} from './tool.js';
export type { ErrorFormatter, ToolKindLookup } from './tool-calls.js';
export { toolKinds } from './tool-kinds.js';
export type { ChatHost, ChatRunOptions, ChatTurn } from './turn-stream.js';
export { type ChunkSink, UiChunks, type UiChunksOptions } from './ui-chunks.js';
