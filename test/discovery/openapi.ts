import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { until } from "../support/until.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested.
type Part = any;

const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }));

/** An OpenAPI document as a client reads it: by following its references. */
export class OpenApi {
  readonly document: Part;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: Part) {
    this.document = document;
  }

  /** What a reference leads to, or the part itself. */
  resolved(part: Part): Part {
    const steps: string[] = part.$ref?.split("/").slice(1) ?? [];
    return part.$ref === undefined ? part : steps.reduce((inner, step) => inner[step], this.document);
  }

  /** An operation, its parameters and answers in place of references. */
  operationAt(method: string, path: string): Part {
    const operation = this.document.paths[path][method.toLowerCase()];
    const responses = Object.entries(operation.responses).map(([status, one]) => [status, this.resolved(one)]);
    const parameters = operation.parameters?.map((one: Part) => this.resolved(one));
    return { ...operation, ...(parameters && { parameters }), responses: Object.fromEntries(responses) };
  }

  /** Every operation as it is written, with its method and path. */
  operations(): Part[] {
    return Object.entries<object>(this.document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ method, path, ...operation })),
    );
  }

  /** What is wrong with a value, by a schema of the document. */
  faultsOf(schema: object, value: unknown): unknown[] {
    const validate = this.#validatorOf(schema);
    validate(value);
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }

  /** Compiled once: that takes far longer than to validate. */
  #validatorOf(schema: object): ValidateFunction {
    const text = JSON.stringify(schema);
    const known = this.#validators.get(text);
    if (known !== undefined) return known;
    const { schemas } = this.document.components;
    const made = ajv.compile({ ...schema, components: { schemas } });
    this.#validators.set(text, made);
    return made;
  }
}

/** Asks, and asks again as long as the answer says so: on a busy machine Redis can be late. */
export async function answerOf(url: string, init: RequestInit = {}): Promise<Answer> {
  let answer: Answer | undefined;
  await until(
    "the relay can answer",
    async () => {
      answer = await said(url, init);
      return answer.status !== 503;
    },
    15_000,
  );
  return answer as Answer;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

async function said(url: string, init: RequestInit): Promise<Answer> {
  const answer = await fetch(url, init);
  return { status: answer.status, headers: answer.headers, body: await bodyOf(answer) };
}

/** The body of an answer: what JSON says, or the text. */
async function bodyOf(answer: Response): Promise<unknown> {
  const text = await answer.text();
  return /\bjson\b/.test(answer.headers.get("content-type") ?? "") ? JSON.parse(text) : text;
}

/**
 * The members of a value, at any depth, with its booleans: what an example has in common with an answer whose texts, numbers
 * and times are others.
 */
export function membersOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [membersOf(value[0])];
  if (typeof value === "boolean") return value;
  if (typeof value !== "object" || value === null) return "value";
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, membersOf(member)]));
}
