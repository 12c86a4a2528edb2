// Drives a headless Chromium for tests/python/browsing.py: a line of JSON in, a line of JSON out.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

const [tools, chromium] = process.argv.slice(2);
const { chromium: engine } = require(path.join(tools, "node_modules", "playwright-core"));
const axe = fs.readFileSync(path.join(tools, "node_modules", "axe-core", "axe.min.js"), "utf8");

const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser = null, context = null, page = null, problems = [];

const actions = {
  async open({ url, width, height = 900, dark = false, scripts = true }) {
    browser ??= await engine.launch({ executablePath: chromium, args: ARGUMENTS });
    await context?.close();
    context = await browser.newContext({
      viewport: { width, height }, colorScheme: dark ? "dark" : "light", javaScriptEnabled: scripts, offline: true,
    });
    page = await context.newPage();
    problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
    // Processor time of the page's thread: the same on a busy and on a quiet machine.
    const inspector = await context.newCDPSession(page);
    await inspector.send("Performance.enable", { timeDomain: "threadTicks" });
    await page.goto(url, { waitUntil: "load" });
    const { metrics } = await inspector.send("Performance.getMetrics");
    return { milliseconds: 1000 * metrics.find((metric) => metric.name === "TaskDuration").value };
  },
  async axe() {
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    return result.violations.map((violation) => ({
      rule: violation.id, help: violation.help,
      nodes: violation.nodes.slice(0, 5).map((node) => `${node.html.slice(0, 200)}: ${node.failureSummary}`),
    }));
  },
  evaluate: ({ script }) => page.evaluate(script),
  press: ({ key }) => page.keyboard.press(key),
  type: ({ text }) => page.keyboard.type(text),
  click: ({ selector }) => page.click(selector, { timeout: 5000 }),
  screenshot: ({ path, full = true }) => page.screenshot({ path, fullPage: full }).then(() => null),
  problems: () => problems,
};

readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const { action, ...given } = JSON.parse(line);
  try {
    const result = await actions[action](given);
    process.stdout.write(`${JSON.stringify({ result: result ?? null })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ error: String(error) })}\n`);
  }
}).on("close", async () => {
  await browser?.close();
  process.exit(0);
});
