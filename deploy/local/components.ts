import { createGateway } from "gateway/service.ts";
import { readGatewaySettings } from "gateway/settings.ts";
import { createOpsReporting } from "ops-reporting/service.ts";
import { readOpsReportingSettings } from "ops-reporting/settings.ts";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { HttpService } from "relay-runtime/http/http-service.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { Environment } from "relay-runtime/settings.ts";
import { createWsConnector } from "ws-connector/service.ts";
import { readWsConnectorSettings } from "ws-connector/settings.ts";

/** A service that is yet to be made. Both throw SettingsError. */
interface Component {
  check(env: Environment): void;
  create(env: Environment, options: { readonly logger: Logger }): HttpService;
}

/** In the order of their start: reports read the window that the others open. */
export const COMPONENTS: Readonly<Record<ServiceName, Component>> = {
  "ws-connector": component(readWsConnectorSettings, createWsConnector),
  gateway: component(readGatewaySettings, createGateway),
  "ops-reporting": component(readOpsReportingSettings, createOpsReporting),
};
export const ALL_SERVICES = Object.keys(COMPONENTS) as ServiceName[];

function component<Settings>(
  read: (env: Environment) => Settings,
  create: (settings: Settings, options: { readonly logger: Logger }) => HttpService,
): Component {
  return {
    check: read,
    create: (env, options) => create(read(env), options),
  };
}
