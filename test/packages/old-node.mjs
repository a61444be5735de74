// Makes a Node say that it is an old one.
Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });
