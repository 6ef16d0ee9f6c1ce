/** Words of which a byte-level tokenizer makes about one token each. */
const WORDS =
  "the of and to in is for on that by this with you it not or be are from at as your all have new more an was we will".split(
    " ",
  );
const SEEN_TOKENS = 3500;
const NEW_TOKENS = 500;

/** The n-th request of a conversation: 3,500 tokens that it sent before, and 500 that nobody has seen. */
export function chatBody(conversation: number, request: number): string {
  const messages = [
    { role: "system", content: text(`s${conversation}`, SEEN_TOKENS) },
    { role: "user", content: text(`s${conversation} r${request}`, NEW_TOKENS) },
  ];
  return JSON.stringify({ model: "bench", stream: true, messages });
}

/** A request of a few words. */
export function smallBody(isStreaming: boolean): string {
  const messages = [{ role: "user", content: "say something" }];
  return JSON.stringify({ model: "bench", ...(isStreaming && { stream: true }), messages });
}

function text(name: string, tokens: number): string {
  let state = 0;
  for (const letter of name) state = (Math.imul(state, 31) + letter.charCodeAt(0)) >>> 0;
  const words = [name];
  while (words.length < tokens) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    words.push(WORDS[(state >>> 16) % WORDS.length]);
  }
  return words.join(" ");
}
