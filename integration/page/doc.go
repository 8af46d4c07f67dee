// Package page tests the status page in a headless Chromium, over real groups. It is a module of its own, so that users of the library do not pay
// for what drives the browser.
package page
