import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  type InferUITools,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIDataTypes,
  type UIMessage,
} from 'ai';
import { type FormEvent, useEffect, useState } from 'react';
import { approvalText } from 'rondo/protocol';
import type { refund } from '../support.js'; // only its type: no code of the server is in the page

type Message = UIMessage<unknown, UIDataTypes, InferUITools<{ refund: typeof refund }>>;
type Answer = (answer: { id: string; approved: boolean }) => unknown;

/** Loads the history of a chat and shows it. */
export function ChatPage({ id, api = '/api/chat' }: { id: string; api?: string }) {
  const [history, setHistory] = useState<Message[]>();
  useEffect(() => {
    fetch(`${api}/${id}`)
      .then((response) => (response.ok ? response.json() : []))
      .then(setHistory, () => setHistory([]));
  }, [id, api]);
  return history === undefined ? <p>Loading…</p> : <Chat id={id} api={api} history={history} />;
}

function Chat({ id, api, history }: { id: string; api: string; history: Message[] }) {
  const [text, setText] = useState('');
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat<Message>({
    id,
    messages: history,
    resume: true, // receives the rest of a reply that was running when the page was loaded
    transport: new DefaultChatTransport({ api }),
    // Continues the turn when all of its approvals are answered.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isBusy = status === 'submitted' || status === 'streaming';
  const isWaiting = messages.some(({ parts }) =>
    parts.some((part) => 'state' in part && part.state === 'approval-requested'),
  );
  const send = (event: FormEvent) => {
    event.preventDefault();
    void sendMessage({ text });
    setText('');
  };
  return (
    <main>
      {messages.map((message) => (
        <section key={message.id} aria-label={message.role}>
          {Object.entries(message.parts).map(([index, part]) => (
            <Part key={index} part={part} answer={addToolApprovalResponse} />
          ))}
        </section>
      ))}
      {error !== undefined && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input
          aria-label="Message"
          value={text}
          disabled={isWaiting} // an approval is answered before the next message
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" disabled={isBusy || isWaiting || text.trim() === ''}>
          Send
        </button>
      </form>
    </main>
  );
}

function Part({ part, answer }: { part: Message['parts'][number]; answer: Answer }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (part.type !== 'tool-refund') return null;
  switch (part.state) {
    case 'approval-requested': {
      const { id } = part.approval;
      return (
        <fieldset>
          <legend>{approvalText(part)}</legend>
          <button type="button" onClick={() => answer({ id, approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => answer({ id, approved: false })}>
            Deny
          </button>
        </fieldset>
      );
    }
    case 'output-available':
      return <p>Refunded: {part.output.refunded}</p>;
    case 'output-denied':
      return <p>Not refunded.</p>;
    case 'output-error':
      return <p role="alert">{part.errorText}</p>;
    default:
      return <p>Refund of {part.input?.amount}…</p>;
  }
}
