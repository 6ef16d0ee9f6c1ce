import type { PromptTokenizer } from "../tokenizer/types.ts";
import { parseGenerationRequest } from "../wire/openai-request.ts";
import { encodeModels } from "../wire/openai-reply.ts";
import { field } from "../wire/openai-usage.ts";
import { readJson, refuse, respondJson, type Routes } from "./http-reply.ts";

export interface InfoRoutesOptions {
  readonly models: readonly string[];
  readonly tokenizer: PromptTokenizer;
  readonly maxSequenceTokens: number;
  readonly maxBodyBytes: number;
  readonly isDraining: () => boolean;
}

/** What routers and people ask a worker about itself, in the words of vLLM and SGLang. */
export function infoRoutes(options: InfoRoutesOptions): Routes {
  const { models, tokenizer, maxSequenceTokens, maxBodyBytes, isDraining } = options;
  const serverInfo = JSON.stringify({
    model_path: models[0],
    served_model_name: models[0],
    max_model_len: maxSequenceTokens,
    is_generation: true,
    simulated: true,
  });
  return {
    "GET /health": (_, response) => {
      if (isDraining()) refuse(response, "shutting_down", "the worker is shutting down");
      else respondJson(response, 200, JSON.stringify({ status: "ok" }));
    },
    "GET /v1/models": (_, response) => respondJson(response, 200, encodeModels(models)),
    "GET /get_model_info": (_, response) => respondJson(response, 200, serverInfo),
    "GET /model_info": (_, response) => respondJson(response, 200, serverInfo),
    "GET /get_server_info": (_, response) => respondJson(response, 200, serverInfo),
    "GET /server_info": (_, response) => respondJson(response, 200, serverInfo),
    "POST /tokenize": async (request, response) => {
      const body = await readJson(request, response, maxBodyBytes);
      if (body === undefined) return;
      const kind = field(body.value, "messages") === undefined ? "completion" : "chat";
      // As with vLLM, the model may be left out here.
      const named = typeof body.value === "object" ? { model: models[0], ...body.value } : body.value;
      const { request: wanted, problem } = parseGenerationRequest(kind, named);
      if (problem !== undefined) {
        refuse(response, "invalid_request", problem.message, { param: problem.param });
        return;
      }
      const tokens = tokenizer.encode(wanted.prompt);
      const reply = { count: tokens.length, max_model_len: maxSequenceTokens, tokens: [...tokens] };
      respondJson(response, 200, JSON.stringify(reply));
    },
  };
}
