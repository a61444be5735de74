import { describeJsonParser } from "../../test/support/json-parser.ts";
import { parseJson } from "../src/parse-json.ts";

describeJsonParser(parseJson);
