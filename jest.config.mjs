export default {
  testEnvironment: "node",
  testMatch: ["<rootDir>/{shared,services,connector,testing,deploy,test}/**/*.test.ts"],
  // Tests of projects to come: what relay init writes.
  testPathIgnorePatterns: ["/node_modules/", "<rootDir>/connector/templates/"],
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      {
        jsc: { target: "es2024", parser: { syntax: "typescript" }, experimental: { keepImportAttributes: true } },
        module: { type: "es6" },
      },
    ],
  },
  reporters: ["default", "<rootDir>/test/support/closing-line.mjs"],
  testTimeout: 60_000,
  maxWorkers: 2,
};
