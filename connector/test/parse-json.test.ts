import { describeJsonParser, describeUniqueJsonParser } from "../../test/support/json-parser.ts";
import { parseJson, parseUniqueJson } from "../src/parse-json.ts";

describeJsonParser(parseJson);
describeUniqueJsonParser(parseUniqueJson);
