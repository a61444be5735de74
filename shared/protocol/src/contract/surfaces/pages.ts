import { z } from "zod";
import { get, type Surface } from "../surface.ts";

const page = (path: string, summary: string) =>
  get({
    path,
    service: "gateway",
    group: "discovery",
    summary,
    response: z.string(),
    media: "text/html",
  });
const asset = (path: string, media: string, summary: string) =>
  get({
    path,
    service: "gateway",
    group: "discovery",
    summary,
    response: z.string(),
    media,
    traffic: false,
  });

/** Pages for people, with their styles, scripts and icon. Answered by the gateway. */
export const PAGE_SURFACES = {
  home: page("/", "What the relay is, with charts of the live window."),
  productDesign: page("/product/design", "How the relay is designed."),
  pageStyle: asset("/assets/relay.css", "text/css", "Styles of every page."),
  homeStyle: asset("/assets/home.css", "text/css", "Styles of the home page."),
  designStyle: asset("/assets/design.css", "text/css", "Styles of the design page."),
  homeScript: asset("/assets/home.js", "text/javascript", "Reads the reports for the home page."),
  figuresScript: asset("/assets/figures.js", "text/javascript", "Draws the charts of the home page."),
  favicon: asset("/favicon.svg", "image/svg+xml", "Icon of the relay."),
} as const satisfies Record<string, Surface>;
