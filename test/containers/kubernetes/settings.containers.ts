import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { readGatewaySettings } from "gateway/settings.ts";
import type { IContainer } from "kubernetes-models/v1";
import { readOpsReportingSettings } from "ops-reporting/settings.ts";
import { settingsReader } from "relay-runtime/settings.ts";
import type { SettingName } from "relay-runtime/settings-catalogue.ts";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { environmentOf, helpersOf, settingsOf } from "./environment.ts";
import { containersOf, mainContainer, named, OVERLAYS, ofKind, podOf, render } from "./manifests.ts";

const READERS = {
  gateway: readGatewaySettings,
  "ws-connector": readWsConnectorSettings,
  "ops-reporting": readOpsReportingSettings,
};
/** What the images themselves set. */
const IMAGE = { HOST: "0.0.0.0", PORT: "8080", RELAY_DEPLOY_ID: "digest" };

const source = await readFile(new URL("../../../deploy/redis/window-reset.ts", import.meta.url), "utf8");
const resetNames = /settingsReader\(([^)]*)\)/.exec(source)?.[1]?.match(/[A-Z_]+/g) as SettingName[];

const overlays = await Promise.all(OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));

describe.each(overlays)("The $overlay overlay", ({ objects }) => {
  const gateway = named(objects, "Deployment", "gateway");
  const services = Object.entries(READERS).map(([name, read]) => {
    const container = mainContainer(named(objects, "Deployment", name));
    return { name, read, container, environment: environmentOf(objects, container) };
  });
  const [windowReset] = podOf(gateway).spec.initContainers as [IContainer];

  test.each(services)("gives $name the settings that it reads and no others", ({ read, container, environment }) => {
    const known = [...settingsOf(read), ...helpersOf(container)];
    expect(known).toEqual(expect.arrayContaining(Object.keys(environment)));
    expect(environment).not.toHaveProperty("RELAY_DEPLOY_ID");
  });

  test.each(services)("gives $name values that it takes", ({ name, read, environment }) => {
    const settings = read({ ...IMAGE, ...environment });
    expect(settings.metricsPort).toBe(9090);
    const { protocol, username, password, host } = new URL(settings.redisUrl);
    expect({ protocol, username, host }).toEqual({ protocol: "redis:", username: name, host: "redis:6379" });
    expect(password).toBe(environment.REDIS_PASSWORD);
  });

  test("gives services the same value of every setting that two of them read, their Redis user aside", () => {
    const values = services.map(({ read, environment }) => read({ ...IMAGE, ...environment }) as object);
    for (const [setting, value] of values.flatMap((settings) => Object.entries(settings))) {
      if (setting === "redisUrl") continue;
      for (const settings of values) expect({ [setting]: value, ...settings }).toHaveProperty([setting], value);
    }
  });

  test("listens where the pod's ports are", () => {
    for (const { container, read, environment } of services) {
      const { port, metricsPort } = read({ ...IMAGE, ...environment });
      expect(container.ports?.map(({ containerPort }) => containerPort)).toEqual([port, metricsPort]);
    }
  });

  test("resets the window in the gateway's init container and nowhere else, with the gateway's own image", () => {
    const resetting = ofKind(objects, "Deployment")
      .flatMap(containersOf)
      .filter(({ command }) => command?.some((part) => part.includes("window-reset")));
    expect(resetting).toEqual([windowReset]);
    expect(windowReset.image).toBe(mainContainer(gateway).image);
    expect(windowReset.command).toEqual(["node", "--env-file=/app/deploy.env", "/app/deploy/redis/window-reset.ts"]);
    expect(podOf(gateway).spec.restartPolicy ?? "Always").toBe("Always");
  });

  test("gives the window reset what it reads: its own Redis user, and the partitions of the services", () => {
    const environment = environmentOf(objects, windowReset);
    expect([...resetNames, ...helpersOf(windowReset)]).toEqual(expect.arrayContaining(Object.keys(environment)));
    const settings = settingsReader("REDIS_URL", "RELAY_PARTITIONS")(environment);
    expect(new URL(settings.redisUrl).username).toBe("window-reset");
    expect(String(settings.partitions)).toBe(services[0]?.environment.RELAY_PARTITIONS);
  });

  test("mounts the keys file's folder, not the file, where the services that read it look for it", () => {
    for (const { name, read, container } of services) {
      const mounts = container.volumeMounts ?? [];
      const reads = settingsOf(read).includes("RELAY_KEYS_FILE");
      expect(mounts).toEqual(reads ? [{ name: "keys", mountPath: "/run/agent-relay", readOnly: true }] : []);
      const [volume] = podOf(named(objects, "Deployment", name)).spec.volumes ?? [];
      // 0440 under the pod's fsGroup: group 1000 may read it, others not.
      if (reads) expect(volume).toEqual({ name: "keys", secret: { secretName: "relay-keys", defaultMode: 0o440 } });
    }
  });
});
